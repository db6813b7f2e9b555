//! Further languages with braces. Comments and texts contain definitions that must not count.

use super::render;

const TYPESCRIPT: &str = r####"import React, { useState } from 'react';
// function commented() {}
/* class Gone {} */
const LIMIT = 10;
export const config: Config = {
  retries: 3,
  onError: (e) => { console.log(`function ${fake("}")} {`); },
  handle() { return /[/"{]/.test("x"); },
};
export default function App({ a, b }: Props): JSX.Element {
  const [state, setState] = useState(0);
  const handle = useCallback(async (e: Event) => {
    if (e) { return; }
  }, []);
  const local = (x: number): number => x / 2 / 3;
  return (
    <div onClick={() => handle(1)}>
      <p>Don't stop</p>
      {items.map(i => { return <Item key={i} />; })}
    </div>
  );
}

/** Doc. */
@Injectable({ providedIn: 'root' })
export abstract class Service<T extends Base = {}> extends Parent implements I {
  private readonly name: string = "x";
  static #count = 0
  handler = async (e: Event): Promise<void> => { await 1; }
  constructor(private http: Http) { super(); }
  get value(): number { return 1; }
  async *items<T>(a: T, b = { x: 1 }): AsyncGenerator<T> {
    for (const x of y) { if (x) { } }
  }
  abstract run(): void;
  render(): { a: string } {
    return { a: "1" };
  }
}

export interface Shape { area(): number; name: string; on?(e: Event): void }
type Id<T> = string | { id: T };
export enum Color { Red, Green }
declare module Foo.Bar { function inner(): void }
export const add = (a: number, b: number) => a + b
export const curried = <T,>(a: T) => (b: T) => { return a; }
let counter = 0, other
var self = this;
export default class extends React.Component { render() { return null } }
exports.helper = function (x) { return x; };
Foo.prototype.bar = function bar() {};
module.exports = { start, stop() { return 1 }, run: async function () {}, go: (x) => { } };
describe('thing', () => {
  const fixture = 1;
  it('works', async () => { function inside() {} });
});
export const Memo = React.memo(function Memo() { return null; });
"####;

#[test]
fn typescript() {
    let want = r####"constant LIMIT 2:4-4
constant config 5:5-9
  method handle 7:8-8
function App 10:10-22
  function handle 12:12-14
  function local 15:15-15
type Service 24:26-39
  method handler 29:29-29
  method constructor 30:30-30
  method value 31:31-31
  method items 32:32-34
  method run 35:35-35
  method render 36:36-38
interface Shape 41:41-41
  method area 41:41-41
  method on 41:41-41
type Id 42:42-42
type Color 43:43-43
module Bar 44:44-44
  function inner 44:44-44
function add 45:45-45
function curried 46:46-46
variable counter 47:47-47
variable self 48:48-48
type default 49:49-49
  method render 49:49-49
function helper 50:50-50
method Foo.bar 51:51-51
method run 52:52-52
method go 52:52-52
function inside 55:55-55
function Memo 57:57-57
"####;
    assert_eq!(render("c.tsx", TYPESCRIPT), want);
}

/// Ending a head at the first `{` would cut these to one line or lose them.
#[test]
fn braces_in_type_bounds_are_not_bodies() {
    let text = "export class Repo<T extends { id: string }> {
  get<K extends keyof { a: T }, V extends { b: K }>(key: K): Map<K, { v: V }> {
    return a < b && { a: 1 };
  }
}
function pick<T extends { id: string }>(x: T) {
  return x;
}
interface Page<T = { a: 1 }> extends Base<{ b: T }> {
  size: number;
}
export const keep = <T extends { id: string }>(x: T) => {
  return x;
};
function less() { return a < b }
function last() {
}
";
    let want = "type Repo 1:1-5
  method get 2:2-4
function pick 6:6-8
interface Page 9:9-11
function keep 12:12-14
function less 15:15-15
function last 16:16-17
";
    assert_eq!(render("c.ts", text), want);
}

#[test]
fn conflict_markers_do_not_break_the_outline() {
    for path in ["a.js", "a.ts"] {
        let text = "foo();\n<<<<<<< HEAD\nbar();\n=======\nbaz();\n>>>>>>> x\nfunction f() {\n}\n";
        assert_eq!(render(path, text), "function f 7:7-8\n");
        assert_eq!(render(path, "======="), "");
    }
}

const KOTLIN: &str = r####"package a.b
import x.y

const val MAX = 3
val lazyThing by lazy { compute() }
typealias Handler = (String) -> Unit

/** Doc: fun fake() {} */
@Serializable
data class User(
    val name: String,
    val age: Int = 0,
) : Base(), Named {
    val upper: String get() = name.uppercase()
    var x: Int = 0
        set(value) { field = value }
    init { require(age >= 0) { "bad ${age.let { "}" }}" } }
    constructor(n: String) : this(n, 1) { }
    override fun toString(): String = "User($name)"
    suspend fun <T : Any> load(id: Int, block: (T) -> Unit): T? where T : Named {
        val f = fun(x: Int): Int { return x }
        list.forEach { it.go() }
        return null
    }
    companion object {
        const val KEY = "k"
        fun create() = User("a")
    }
    enum class Kind { A, B { override fun go() {} }; abstract fun go() }
}
sealed interface State
object Registry : Base() {
    fun register(x: Any) {}
}
fun String.shout(): String = uppercase()
fun <T> List<Map<String, T>>.second(): T {
    return this[1]
}
private inline fun <reified T> gson(raw: String = """fun x() {"""): T {
    return when (x) { 1 -> { a } else -> b }
}
fun interface Clicker { fun click() }
fun expr() = run {
    1
}
internal fun `name with spaces`() {}
"####;

#[test]
fn kotlin() {
    let want = r####"constant MAX 4:4-4
constant lazyThing 5:5-5
type Handler 6:6-6
type User 8:10-30
  method constructor 18:18-18
  method toString 19:19-19
  method load 20:20-24
  type Companion 25:25-28
    constant KEY 26:26-26
    method create 27:27-27
  type Kind 29:29-29
    function go 29:29-29
    method go 29:29-29
interface State 31:31-31
type Registry 32:32-34
  method register 33:33-33
method String.shout 35:35-35
method List.second 36:36-38
function gson 39:39-41
interface Clicker 42:42-42
  method click 42:42-42
function expr 43:43-45
function name with spaces 46:46-46
"####;
    assert_eq!(render("g.kt", KOTLIN), want);
}

const SWIFT: &str = r####"import Foundation

public let maxSize = 10
typealias Block = (Int) -> Void

/// Doc.
@MainActor
public final class Store<T: Codable>: NSObject, Proto where T: Hashable {
    static let shared = Store()
    private var items: [T] = []
    var count: Int { items.count }
    public init(name: String) { self.name = "\(name) { \(foo("}")) " }
    deinit { }
    @discardableResult
    func add(_ item: T, at index: Int = 0) async throws -> Bool {
        guard let x = y else { return false }
        items.map { $0 }
        return true
    }
    class func make() -> Store { Store() }
    static func == (a: Store, b: Store) -> Bool { true }
    subscript(i: Int) -> T { items[i] }
}
struct Point { var x = 0
  func norm() -> Double { 0 } }
indirect enum Expr { case num(Int); case add(Expr, Expr)
  func eval() -> Int { switch self { case .num(let n): return n } } }
protocol Drawable: AnyObject {
    var name: String { get }
    func draw(in rect: CGRect)
    func size() -> Int
}
extension Array.Index: Drawable where Element == Int {
    func draw() {}
}
actor Counter { func inc() {} }
func free<T>(_ x: T) -> T { x }
let text = """
func fake() { "x" }
"""
"####;

#[test]
fn swift() {
    let want = r####"constant maxSize 3:3-3
type Block 4:4-4
type Store 6:8-23
  method init 12:12-12
  method deinit 13:13-13
  method add 14:15-19
  method make 20:20-20
  method subscript 22:22-22
type Point 24:24-25
  method norm 25:25-25
type Expr 26:26-27
  method eval 27:27-27
interface Drawable 28:28-32
  method draw 30:30-30
  method size 31:31-31
implementation Index 33:33-35
  method draw 34:34-34
type Counter 36:36-36
  method inc 36:36-36
function free 37:37-37
constant text 38:38-40
"####;
    assert_eq!(render("h.swift", SWIFT), want);
}

const PHP: &str = r####"<html><?php echo "class Fake {"; ?>
function notCode() {}
<?php
declare(strict_types=1);
namespace App\Models;
use Foo\Bar;
# class Commented {}
const VERSION = '1.0';
define('X', 1);
#[Attribute]
abstract class User extends Model implements \JsonSerializable
{
    use HasFactory, Notifiable;
    public const STATUS = 'a{';
    protected $fillable = ['name', "b{$x['k']}"];
    public function __construct(private readonly string $name) {}
    public static function find(int $id): ?self
    {
        $f = function () use ($id) { return 1; };
        $g = fn($x) => $x;
        $t = <<<EOT
        function fake() {
        EOT;
        if ($id) { foreach ($a as $b) { } }
        return new class { public function anon() {} };
    }
    abstract protected function &name(): string;
}
interface HasName { public function name(): string; }
trait Sluggable { function slug() { return 'x'; } }
enum Suit: string { case Hearts = 'H'; public function label(): string { return ''; } }
function helper(array $a = []): void { }
"####;

#[test]
fn php() {
    let want = r####"module App 5:5-5
constant VERSION 7:8-8
type User 10:11-28
  constant STATUS 14:14-14
  method __construct 16:16-16
  method find 17:17-26
    function anon 25:25-25
  method name 27:27-27
interface HasName 29:29-29
  method name 29:29-29
type Sluggable 30:30-30
  method slug 30:30-30
type Suit 31:31-31
  method label 31:31-31
function helper 32:32-32
"####;
    assert_eq!(render("i.php", PHP), want);
}
