//! Line-based languages and documents. Comments and texts contain definitions that must not count.

use super::render;

const PYTHON: &str = r####""""Module.

def in_docstring(): pass
"""
import os

MAX_SIZE = 10
default: int = {
    "a": 1,
}
type Alias = list[int]

# A comment.
# def commented(): ...
@dataclass(
    frozen=True,
)
class Point(Base, Generic[T]):
    """A point.

    class Inner: no
    """

    x: int = 0
    URL = "http://x#y"

    @property
    def norm(self) -> float:
        def helper(a,
                   b=(1,
        2)):
            return '''
def fake():
'''
        return helper(1)

    async def fetch(self): return 1

    class Meta:
        ordering = ["x"]
        def m(self): pass


def top(a, b="def x():") -> None:
    if a:
        def conditional():
            pass

if True:
    def guarded():
        return "\"" + 'it\'s'

async def main():
	pass
	# Still of it.

# Of what follows.
x = lambda: 0
"####;

#[test]
fn python() {
    let want = r####"constant MAX_SIZE 7:7-7
variable default 8:8-8
type Alias 11:11-11
type Point 13:18-41
  method norm 27:28-35
    function helper 29:29-34
  method fetch 37:37-37
  type Meta 39:39-41
    method m 41:41-41
function top 44:44-47
  function conditional 46:46-47
function guarded 50:50-51
function main 53:53-55
variable x 57:58-58
"####;
    assert_eq!(render("b.py", PYTHON), want);
}

const RUBY: &str = r####"# frozen_string_literal: true
=begin
class Fake; end
=end
module Billing
  VERSION = "1.0"
  # An invoice.
  class Invoice < ApplicationRecord
    attr_reader :a
    def self.find(id)
      items.each do |i|
        puts i
      end
    end

    def total=(value) = @total = value
    def ==(other) ; true; end
    def paid?
      <<~SQL
        def fake
        end
      SQL
    end

    private def secret
      if x then y end
    end
    class << self
      def build(*args)
      end
    end
    class Error < StandardError; end
  end
end
def main
end
class Foo::Bar
  def baz
    1
  end
end
"####;

#[test]
fn ruby() {
    let want = r####"module Billing 5:5-34
  constant VERSION 6:6-6
  type Invoice 7:8-33
    method find 10:10-14
    method total= 16:16-16
    method == 17:17-17
    method paid? 18:18-23
    method secret 25:25-27
    method build 29:29-30
    type Error 32:32-32
function main 35:35-36
type Foo.Bar 37:37-41
  method baz 38:38-40
"####;
    assert_eq!(render("k.rb", RUBY), want);
}

const SHELL: &str = r####"#!/usr/bin/env bash
set -e
readonly VERSION=1
export PATH=/x
name=lower
# foo() { }
log() {
    echo "x() {"
    cat <<EOS
fake() {
}
EOS
}
function build-all {
  if true; then
    inner() { echo; }
  fi
}
one() { echo 1; }
function both ()
{
    local X=1
}
log "$@"
"####;

#[test]
fn shell() {
    let want = r####"constant VERSION 3:3-3
variable PATH 4:4-4
function log 6:7-13
function build-all 14:14-18
  function inner 16:16-16
function one 19:19-19
function both 20:20-23
"####;
    assert_eq!(render("l.sh", SHELL), want);
}

const SQL: &str = r####"-- create table gone (a int);
CREATE TABLE IF NOT EXISTS "public"."users" (
  id serial, name text default 'create table x;'
);
create or replace function app.total(a int) returns int as $$
begin
  create table inner_one (a int);
  return 1;
end;
$$ language plpgsql;
CREATE UNIQUE INDEX users_name ON users (name);
create view v as select case when a then b end from t;
CREATE TRIGGER trg AFTER INSERT ON t BEGIN
  UPDATE t SET a = 1;
  SELECT CASE WHEN 1 THEN 2 END;
END;
create type mood as enum ('a');
CREATE TABLE [dbo].[Orders] (id int)
"####;

#[test]
fn sql() {
    let want = r####"table users 1:2-4
function total 5:5-10
variable users_name 11:11-11
table v 12:12-12
function trg 13:13-16
type mood 17:17-17
table Orders 18:18-18
"####;
    assert_eq!(render("m.sql", SQL), want);
}

#[test]
fn dollar_parameters_do_not_open_a_string() {
    let parameters = "select $1, a$b$;\n".repeat(40);
    let text = format!(
        "{parameters}create function f() returns int as $x$ create table no (a int); $x$;\n\
         create function g() as $$ create table no (a int); $$;\ncreate table t (a int);\n"
    );
    let want = "function f 41:41-41\nfunction g 42:42-42\ntable t 43:43-43\n";
    assert_eq!(render("a.sql", &text), want);
}

const MARKDOWN: &str = r####"---
title: x
# not: heading
---
Intro
# First #
text
```sh
# comment
```
## Sub `code` {#sub}
Setext One
==========
two
---
<!--
# hidden
-->
### Deep
    # indented code
- list
---
last
"####;

#[test]
fn markdown() {
    let want = r####"heading First 6:6-11
  heading Sub `code` 11:11-11
heading Setext One 12:12-23
  heading two 14:14-23
    heading Deep 19:19-23
"####;
    assert_eq!(render("n.md", MARKDOWN), want);
}

#[test]
fn heading_lookalikes_are_not_headings() {
    for (name, text, want) in [
        ("a rule first", "---\n# A\ntext\n", "heading A 2:2-3\n"),
        (
            "front matter",
            "---\n# no\nt: x\n---\n# A\n",
            "heading A 5:5-5\n",
        ),
        (
            "code within a text",
            "```x``` text\n# A\n",
            "heading A 2:2-2\n",
        ),
        ("a fence", "```x\n# no\n```\n# A\n", "heading A 4:4-4\n"),
        (
            "a fence of waves",
            "~~~ `x`\n# no\n~~~\n# A\n",
            "heading A 4:4-4\n",
        ),
        (
            "more of a text",
            "# A\ntext\n    # no\n",
            "heading A 1:1-3\n",
        ),
        (
            "no fence in a text",
            "text\n    ```\n# A\n",
            "heading A 3:3-3\n",
        ),
        (
            "underlined",
            "text\n    more\n====\n",
            "heading text 1:1-3\n",
        ),
        (
            "no line below a text",
            "text\n    ----\n# A\n",
            "heading A 3:3-3\n",
        ),
        (
            "code by a tabulator",
            "# A\n\n\t# no\n",
            "heading A 1:1-3\n",
        ),
        ("three spaces", "   # A\n", "heading A 1:1-1\n"),
    ] {
        assert_eq!(render("n.md", text), want, "{name}");
    }
}

const RESTRUCTURED_TEXT: &str = r####"=====
Title
=====
intro

Section
-------
text
text
~~~~

Sub
~~~
x

Other
-----
+---+
| a |
+---+
"####;

#[test]
fn restructured_text() {
    let want = r####"heading Title 1:2-20
  heading Section 6:6-15
    heading Sub 12:12-15
  heading Other 16:16-20
"####;
    assert_eq!(render("o.rst", RESTRUCTURED_TEXT), want);
}

const TOML: &str = r####"title = "x"
list = [
  "[not]",
]
text = """
[no]
"""
[package]
name = "a"
[[bin]]
name = "b"
[dependencies."x.y"]
"####;

#[test]
fn toml() {
    let want = r####"key title 1:1-1
key list 2:2-4
key text 5:5-7
key package 8:8-9
key bin 10:10-11
key dependencies."x.y" 12:12-12
"####;
    assert_eq!(render("p.toml", TOML), want);
}

const YAML: &str = r####"# c
name: x
on:
  push:
    branches: [a]
"quoted key": 1
jobs:
- a: 1
text: |
  inner: x
---
second: 2
"####;

#[test]
fn yaml() {
    let want = r####"key name 1:2-2
key on 3:3-5
key quoted key 6:6-6
key jobs 7:7-8
key text 9:9-10
key second 12:12-12
"####;
    assert_eq!(render("q.yaml", YAML), want);
}

const JSON: &str = r####"{
  "name": "x", "scripts": { "a": "b", "c": [1, {"d": 2}] },
  "deps": {
    "e": "}"
  }
}
"####;

#[test]
fn json() {
    let want = r####"key name 2:2-2
key scripts 2:2-2
key deps 3:3-5
"####;
    assert_eq!(render("r.json", JSON), want);
}
