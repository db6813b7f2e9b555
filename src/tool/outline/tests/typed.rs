//! Typed languages with braces. Comments and texts contain definitions that must not count.

use super::render;

const RUST: &str = r####"//! Module doc.
use std::fmt;

/// How many.
pub const LIMIT: usize = { 3 + 1 };
static NAME: &str = "fn not_one() {";
pub(crate) type Pairs<K, V> = Vec<(K, V)>;

/// A store.
///
/// fn in_a_comment() {}
#[derive(Debug, Clone)]
#[serde(rename_all = "snake_case")]
pub struct Store<'a, T: Clone + 'a, const N: usize>
where
    T: Default,
{
    items: [T; N],
    name: &'a str,
}

pub struct Unit;
struct Pair(u8, pub u8);

pub enum Kind {
    One { a: u8 },
    Two(u8),
    Three,
}

/* struct Gone { } /* nested fn gone() {} */ */
impl<'a, T: Clone, const N: usize> Store<'a, T, N> where T: Default {
    const ZERO: char = '}';

    /// Gets it.
    #[must_use]
    pub const fn get(&self, at: usize) -> Option<&T> {
        let brace = '{';
        let text = r#"fn raw() { "quoted" }"#;
        fn inner<F: Fn(u8) -> u8>(f: F) -> u8 { f(1) }
        match at { 0 => { None } _ => { None } }
    }

    pub async unsafe fn set<'b>(
        &'b mut self,
        value: T,
    ) -> Result<(), Box<dyn std::error::Error>> {
        Ok(())
    }
}

impl<T> fmt::Display for Kind<T>
where
    for<'x> &'x T: fmt::Display,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, "{{") }
}
impl From<u8> for Box<dyn Fn() -> u8> {}

pub trait Tool: Send + 'static {
    type Output;
    fn spec(&self) -> &str;
    fn call(&self) -> u8 {
        1
    }
}

macro_rules! twice {
    ($x:expr) => { $x; fn $name() {} };
}

extern "C" {
    fn strlen(s: *const u8) -> usize;
}
pub extern "C" fn exported() {}

mod elsewhere;
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_works() {
        let r#fn = b'\'';
        assert_eq!(1, 1);
    }
}
"####;

#[test]
fn rust() {
    let want = r####"constant LIMIT 4:5-5
constant NAME 6:6-6
type Pairs 7:7-7
type Store 9:14-20
type Unit 22:22-22
type Pair 23:23-23
type Kind 25:25-29
implementation Store 31:32-50
  constant ZERO 33:33-33
  method get 35:37-42
    function inner 40:40-40
  method set 44:44-49
implementation Display.Kind 52:52-57
  method fmt 56:56-56
implementation From.Box 58:58-58
interface Tool 60:60-66
  type Output 61:61-61
  method spec 62:62-62
  method call 63:63-65
macro twice 68:68-70
function strlen 73:73-73
function exported 75:75-75
module tests 78:79-87
  function it_works 82:83-86
"####;
    assert_eq!(render("a.rs", RUST), want);
}

const GO: &str = r####"// Package x does.
package x

import (
	"fmt"
)

const Pi = 3.14
const (
	// A is.
	A = iota
	B
	_
	C, D = 1, 2
)

var ErrGone = errors.New("func gone() {")
var (
	table = map[string]int{
		"a": 1,
	}
	mu sync.Mutex
)

// Server serves.
type Server struct {
	Name string
	fn   func(a int) error
	opts struct{ a int }
}

type (
	ID  int
	Set[T comparable] map[T]struct{}
)

type Runner interface {
	// Run runs.
	Run(ctx context.Context) error
	Stop()
	fmt.Stringer
}

// New makes.
func New(name string) *Server {
	s := `func raw() {
`
	return &Server{Name: name}
}

func (s *Server) Run(ctx context.Context) (err error) {
	go func() { defer close(ch) }()
	if x := f(); x != nil { return }
	type local struct{ a int }
	const inside = 1
	return nil
}

func (s *Set[T]) Add(v T) { s.m[v] = struct{}{} }
func Map[T, U any](in []T, f func(T) U) []U { return nil }
func Empty() interface{} {
	return nil
}
func init() { r := '{' }
"####;

#[test]
fn go() {
    let want = r####"constant Pi 8:8-8
constant A 10:11-11
constant B 12:12-12
constant C 14:14-14
variable ErrGone 17:17-17
variable table 19:19-21
variable mu 22:22-22
type Server 25:26-30
type ID 33:33-33
type Set 34:34-34
interface Runner 37:37-42
  method Run 38:39-39
  method Stop 40:40-40
function New 44:45-49
method Server.Run 51:51-57
  type local 54:54-54
method Set.Add 59:59-59
function Map 60:60-60
function Empty 61:61-63
function init 64:64-64
"####;
    assert_eq!(render("d.go", GO), want);
}

const JAVA: &str = r####"package com.example;
import java.util.*;

/**
 * class Doc { void fake() {} }
 */
@Service
@RequestMapping(value = "/a")
public final class Orders<T extends Comparable<T>> extends Base implements Api, Closeable {
    private static final Logger LOG = LoggerFactory.getLogger(Orders.class);
    public static final int MAX = 10, MIN = 1;
    private final Map<String, List<T>> items = new HashMap<>();
    static { System.out.println("{"); }

    public Orders(int a) { this.a = a; }

    @Override
    public <R> List<R> map(Function<? super T, ? extends R> f) throws IOException, Other {
        if (x) { return null; } else if (y) { }
        for (int i = 0; i < 3; i++) { foo(i); }
        Runnable r = new Runnable() {
            @Override public void run() { int c = '}'; }
        };
        items.forEach(x -> { bar(x); });
        synchronized (this) { }
        return switch (x) { case 1 -> { yield null; } default -> null; };
    }
    protected abstract int size();
    java.util.List<String> names() { return null; }
    enum Color { RED { int v() { return 1; } }, GREEN; private int x; int v() { return 0; } }
    interface Visitor<R> { R visit(Orders o); default void done() {} }
    record Point(int x, int y) { Point { check(); } }
    @interface Marker { String value() default ""; }
    String text = """
        class Fake { void no() {} }
        """;
}
"####;

#[test]
fn java() {
    let want = r####"type Orders 4:9-37
  constant LOG 10:10-10
  constant MAX 11:11-11
  method Orders 15:15-15
  method map 17:18-27
    method run 22:22-22
  method size 28:28-28
  method names 29:29-29
  type Color 30:30-30
    method v 30:30-30
    method v 30:30-30
  interface Visitor 31:31-31
    method visit 31:31-31
    method done 31:31-31
  type Point 32:32-32
  interface Marker 33:33-33
    method value 33:33-33
"####;
    assert_eq!(render("e.java", JAVA), want);
}

const C_SHARP: &str = r####"using System;
namespace App.Core
{
    /// <summary>Doc</summary>
    [Serializable]
    public sealed partial class Cart<T> : Base<T>, ICart where T : class, new()
    {
        public const int Max = 10;
        private static readonly string Path = @"C:\dir\";
        public int Count { get; private set; }
        public string Name => $"{first} {last}";
        public event EventHandler Changed;
        public Cart(int a) : base(a) { }
        [HttpGet("x")]
        public async Task<IEnumerable<T>> GetAsync<TKey>(TKey key, CancellationToken ct = default)
        {
            foreach (var x in y) { await foo(x); }
            using (var s = Open()) { }
            var q = items.Where(i => { return i.Ok; });
            return null;
        }
        public int Size() => items.Count;
        public static Cart<T> operator +(Cart<T> a, Cart<T> b) { return a; }
        ~Cart() { }
    }
    public interface ICart { void Add(int x); int Total { get; } }
    public record Person(string Name, int Age);
    public enum Level { Low, High }
    public delegate void Handler<T>(object sender, T e);
    struct P { public int X; }
}
"####;

#[test]
fn c_sharp() {
    let want = r####"module Core 2:2-31
  type Cart 4:6-25
    constant Max 8:8-8
    constant Path 9:9-9
    variable Count 10:10-10
    variable Name 11:11-11
    method Cart 13:13-13
    method GetAsync 14:15-21
    method Size 22:22-22
    method Cart 24:24-24
  interface ICart 26:26-26
    method Add 26:26-26
    variable Total 26:26-26
  type Person 27:27-27
  type Level 28:28-28
  type Handler 29:29-29
  type P 30:30-30
"####;
    assert_eq!(render("f.cs", C_SHARP), want);
}

const C_AND_CPP: &str = r####"#include <vector>
#define MAX_ITEMS 10
#define SQUARE(x) \
    ((x) * (x))
// void commented() {}
#if 0
void disabled() {
#endif
namespace app::core {

static const int kLimit = 1'000;
constexpr char kName[] = "class X {";
extern "C" {
int c_api(int a, char *b);
}
enum class Color : uint8_t { Red, Green };
struct Point { int x, y; Point(int a) : x{a}, y(0) {} int norm() const { return 1; } };
typedef struct node { struct node *next; } node_t;
typedef int (*callback_t)(void *, int);
using Map = std::map<std::string, int>;

template <typename T, class U = std::vector<T>>
class EXPORT_API Stack final : public Base<T>, private Other {
public:
    explicit Stack(size_t n = 3);
    virtual ~Stack() = default;
    Stack &operator=(const Stack &) = delete;
    bool operator==(const Stack& o) const { return true; }
    T& operator[](size_t i) { return data_[i]; }
    void push(const T &value) noexcept override;
    template <class F> auto map(F f) -> decltype(f(1)) { return f(1); }
    static int count() { return 1; }
private:
    std::vector<T> data_;
    static constexpr int kMax = 3;
    friend class Foo;
    class Inner;
};

template <typename T>
void Stack<T>::push(const T &value) noexcept {
    if (x) { for (;;) { } }
    auto f = [&](int a) { return a; };
    const char *s = R"(void raw() { )";
    char c = '{';
}
Foo::Foo(int a) : Base(a), b_{1}, c_(2) { init(); }
Foo::~Foo() {}
static inline unsigned long
gnu_style (int a,
           char **b)
{
  return 0;
}
std::unique_ptr<Foo> make(std::function<void(int)> f = {}) { return nullptr; }
int g_table[2][3] = { {1}, {2} };
#ifdef A
int both(int a) {
#else
int both(long a) {
#endif
  return 1;
}
} // namespace
TEST(StackTest, Pushes) { EXPECT_EQ(1, 1); }
int main(int argc, char **argv) { return 0; }
MODULE_LICENSE("GPL")
static struct file_operations fops = {
  .open = my_open,
};
"####;

#[test]
fn c_and_cpp() {
    let want = r####"macro MAX_ITEMS 2:2-2
macro SQUARE 3:3-4
module core 9:9-64
  constant kLimit 11:11-11
  constant kName 12:12-12
  function c_api 14:14-14
  type Color 16:16-16
  type Point 17:17-17
    method Point 17:17-17
    method norm 17:17-17
  type node_t 18:18-18
  type callback_t 19:19-19
  type Map 20:20-20
  type Stack 22:23-38
    method Stack 24:25-25
    method Stack 26:26-26
    method operator 28:28-28
    method operator 29:29-29
    method push 30:30-30
    method map 31:31-31
    method count 32:32-32
    constant kMax 35:35-35
  method Stack.push 40:41-46
  method Foo.Foo 47:47-47
  method Foo.Foo 48:48-48
  function gnu_style 49:50-54
  function make 55:55-55
  variable g_table 56:56-56
  function both 58:58-63
function StackTest.Pushes 65:65-65
function main 66:66-66
variable fops 67:68-70
"####;
    assert_eq!(render("j.cpp", C_AND_CPP), want);
}
