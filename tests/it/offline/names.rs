//! Questions about a name in something, and about a file by its name.

use super::says;

const ROUTER: &str = "\
pub struct Router {
    routes: Vec<Route>,
}

impl Router {
    /// Puts all routes of another one below a path.
    pub fn nest(mut self, path: &str, other: Router) -> Self {
        for route in other.routes {
            self.routes.push(route.below(path));
        }
        self
    }
}
";

const TREE: &str = "\
/// A tree of paths, in which each can nest.
pub struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    /// Nests a tree: nest it, nest all of it, and nest what is nested.
    pub fn nest(&mut self, nest: Tree) {
        self.nodes.extend(nest.nodes);
    }

    pub fn size(&self) -> usize {
        self.nodes.len()
    }
}
";

const QUERY: &str = "\
class Manager:
    def filter(self, **wanted):
        return self.all().filter(**wanted)


class QuerySet:
    def all(self):
        return self

    def filter(self, **wanted):
        return [row for row in self.rows if wanted]
";

const DATABASE: &str = "\
#include \"db.h\"

Status Memory::Get(const Key& key, std::string* value) {
  return Status::NotFound();
}

Status Database::Get(const Key& key, std::string* value) {
  return memory_.Get(key, value);
}
";

#[tokio::test]
async fn of_several_by_a_name_the_one_in_what_was_named_leads() {
    let files = [
        ("src/router.rs", ROUTER),
        ("src/tree.rs", TREE),
        (
            "src/path/mod.rs",
            "pub fn size(path: &str) -> usize {\n    path.len()\n}\n",
        ),
        ("query.py", QUERY),
        ("db.cc", DATABASE),
    ];
    let rows: [super::Row<'_>; 9] = [
        (
            &["where is Router::nest defined?"],
            "answered",
            &["The closest match is the definition of `Router::nest` in src/router.rs:6-12."],
        ),
        (
            &["what does Tree::nest do?"],
            "answered",
            &["The closest match is the definition of `Tree::nest` in src/tree.rs:7-10."],
        ),
        (
            &["wo ist QuerySet.filter definiert?"],
            "answered",
            &["The closest match is the definition of `QuerySet.filter` in query.py:10-11."],
        ),
        (
            &["Manager.filter"],
            "answered",
            &["The closest match is the definition of `Manager.filter` in query.py:2-3."],
        ),
        (
            &["Database::Get"],
            "answered",
            &["The closest match is the definition of `Database::Get` in db.cc:7-9."],
        ),
        (
            &["where is path::size defined?"],
            "answered",
            &["The closest match is the definition of `size` in src/path/mod.rs:1-3."],
        ),
        (
            &["where is Router::size defined?"],
            "partial",
            &[
                "I saw `size` defined here, but not in `Router`. The closest match is the definition of `size`",
            ],
        ),
        (
            &["where is Router::merge defined?"],
            "partial",
            &["I saw no definition of `Router::merge` here."],
        ),
        // A field is no definition that is known as one.
        (&["where is Tree::nodes?"], "answered", &["src/tree.rs:"]),
    ];
    says(&files, &rows).await;
}

#[tokio::test]
async fn whether_a_file_is_there_is_told_with_its_place_or_where_none_was_seen() {
    let files = [
        (
            "README.md",
            "# Shop\n\nRuns in Docker: see the Dockerfile.\n",
        ),
        ("tools/Makefile", "all:\n\tcc a.c\n"),
        (".github/workflows/ci.yml", "on: push\n"),
        (".gitignore", "target\nlocal.toml\n"),
        ("local.toml", "a = 1\n"),
        ("src/empty.rs", ""),
    ];
    let rows: [super::Row<'_>; 9] = [
        (
            &["is there a Dockerfile?"],
            "partial",
            &[
                "I saw no Dockerfile here. I looked for `Dockerfile`,",
                "neither hidden nor ignored.",
            ],
        ),
        (
            &["does this project have a Makefile?"],
            "answered",
            &["Yes: tools/Makefile. At the top of the project I saw none.\n\ntools/Makefile:1-2\n"],
        ),
        (
            &["is there a CI configuration?"],
            "answered",
            &["Yes: .github/workflows/ci.yml.\n\n.github/workflows/ci.yml:1\n"],
        ),
        (
            &["gibt es ein README?"],
            "answered",
            &["Yes: README.md.\n\nREADME.md:1-3\n"],
        ),
        (
            &["y a-t-il un fichier .gitignore ?"],
            "answered",
            &["Yes: .gitignore."],
        ),
        (
            &["¿hay un .editorconfig?"],
            "partial",
            &["I saw no `.editorconfig` here. I looked by its path for `.editorconfig`."],
        ),
        (
            &["is there a local.toml?"],
            "answered",
            &["Yes: local.toml."],
        ),
        (
            &["is there a file called empty.rs?"],
            "answered",
            &["Yes: src/empty.rs."],
        ),
        (
            &["is there a src/gone.rs?"],
            "partial",
            &["I saw no `src/gone.rs` here."],
        ),
    ];
    says(&files, &rows).await;
}
