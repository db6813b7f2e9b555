//! Lines of common languages, and what they define.

use super::*;

#[test]
fn definitions_of_common_languages_are_seen() {
    for (line, name) in [
        ("pub(in crate::store) fn read_it(a: u32) {", "read_it"),
        ("pub(in crate::store) struct Store {", "Store"),
        ("pub extern \"system\" fn call_it(a: u32) {", "call_it"),
        ("extern \"C\" fn call_it() {", "call_it"),
        ("extern \"C\" {", ""),
        ("pub(crate) async fn read_it(&self) {", "read_it"),
        ("    fn inner() {", "inner"),
        ("impl<T> Stream for KeepAlive<T> {", "KeepAlive"),
        ("impl Kind {", "Kind"),
        ("class Builder(Base):", "Builder"),
        ("    async def run(self):", "run"),
        ("func (s *Server) Serve() {", "Serve"),
        ("export default function start (a) {", "start"),
        ("const onSend = (a) => {", "onSend"),
        ("Reply.prototype.send = function (payload) {", "send"),
        ("public static void main(String[] args) {", "main"),
        ("static int parse_it(char *text) {", "parse_it"),
        ("MAX_TURNS = 3", "MAX_TURNS"),
        ("#define LIMIT 3", "LIMIT"),
        ("if (a) {", ""),
        ("let x = 3;", ""),
        ("return foo(1)", ""),
        ("foo(1);", ""),
    ] {
        let bare = line.trim();
        let found = defined(Tongue::Other, bare).map_or("", |(start, end)| &bare[start..end]);
        assert_eq!(found, name, "{line}");
    }
}
#[test]
fn what_is_announced_is_defined_elsewhere() {
    for (path, line, name) in [
        ("a.h", "class Index;", ""),
        ("a.c", "struct Index;", ""),
        ("a.c", "typedef struct index index;", ""),
        ("a.rs", "struct Index;", "Index"),
        ("a.rs", "struct Index(u32);", "Index"),
        ("a.rs", "pub mod index;", ""),
        ("a.rs", "mod index {", "index"),
        ("a.sv", "module counter;", "counter"),
    ] {
        let found = name_defined(Tongue::of(path), line, std::iter::empty());
        let found = found.map_or("", |(start, end)| &line[start..end]);
        assert_eq!(found, name, "{path}: {line}");
    }
}

#[test]
fn each_language_has_its_own_way() {
    for (path, line, name) in [
        ("a.h", "#define walk_each(a, i) \\", "walk_each"),
        ("a.h", "# define LIMIT 3", "LIMIT"),
        ("a.h", "#  define\tLIMIT", "LIMIT"),
        ("a.h", "#ifdef LIMIT", ""),
        ("a.c", "const char *name_of(int a) {", "name_of"),
        ("a.c", "static struct index *index_of(int a)", "index_of"),
        ("a.c", "static const struct option options[] = {", ""),
        ("a.c", "    struct index *a,", ""),
        ("a.c", "struct index {", "index"),
        ("a.c", "struct __attribute__((packed)) index {", "index"),
        ("a.h", "class EXPORT Index : public Base {", "Index"),
        ("a.h", "class Index final : public Base {", "Index"),
        ("a.h", "enum class Kind {", "Kind"),
        ("a.cc", "std::function<void()> f = [] {", ""),
        ("a.c", "    error = call_function(a);", ""),
        ("a.c", "    walk_each(&a, i, x) {", ""),
        ("a.c", "    LIMIT = 3,", "LIMIT"),
        ("a.rs", "static LIMIT: u32 = 3;", "LIMIT"),
        ("a.rs", "pub static mut LIMIT: u32 = 3;", "LIMIT"),
        ("a.rs", "    Kind::Index => {", ""),
        ("a.rs", "    LIMIT => 3,", ""),
        ("a.rs", "    LIMIT = 3,", "LIMIT"),
        ("a.rs", "    let a = match b { C => 1, D => 2 };", ""),
        ("a.rs", "    run_blocking(move || {", ""),
        ("a.js", "  resolve => {", ""),
        ("a.js", "  handler (request) {", "handler"),
        ("a.js", "  withLock('a', () => {", ""),
        ("a.js", "load = function (a) {", "load"),
        ("a.js", "load = functions[0]", ""),
        ("a.js", "\"type of it\",", ""),
        ("a.py", "\"No module named so\",", ""),
        ("a.py", "    with open_file(a) as b:", ""),
        ("a.sh", "deploy_app() {", "deploy_app"),
    ] {
        let found = name_defined(Tongue::of(path), line, std::iter::empty());
        let found = found.map_or("", |(start, end)| &line[start..end]);
        assert_eq!(found, name, "{path}: {line}");
    }
}

#[test]
fn calls_before_a_colon_or_at_an_end_define_nothing_where_a_word_would() {
    for (path, text) in [
        ("a.py", "async with hold_lock(a):\n    pass"),
        ("a.py", "described in backoff (see the guide):"),
        ("a.js", "export default createHandler(opts)"),
        ("a.js", "handler: createHandler(opts)"),
        ("a.rs", "    F: FnMut() -> io::Result<()> + Send,\n{"),
    ] {
        let mut lines = text.lines();
        let line = lines.next().unwrap();
        assert_eq!(name_defined(Tongue::of(path), line, lines), None, "{text}");
    }
}
