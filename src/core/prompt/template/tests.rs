use super::*;
use crate::model::{QueryType, tool::ToolNeed};
use crate::prompt::{
    Variables,
    tests::{prompts, tool},
    variables::ToolDetail,
};

fn problems(file: &str, text: &str) -> Vec<(Option<usize>, FileFault)> {
    match prompts(&[(file, text)]) {
        Ok(_) => Vec::new(),
        Err(Error::Files(found)) => {
            assert!(
                found.iter().all(|broken| broken.file.ends_with(file)),
                "{found:?}"
            );
            found
                .into_iter()
                .map(|broken| (broken.line, broken.fault))
                .collect()
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_broken_template_is_refused_with_its_line() {
    let depth = 10;
    let endless = [
        "x ",
        &"{% for t in tools %}".repeat(depth),
        &"{% endfor %}".repeat(depth),
    ]
    .concat();
    let unknown = |line, name: &str| (Some(line), FileFault::UnknownVariable(name.to_owned()));
    for (name, text, expected) in [
        ("sound", "{{ project_name }}{{ tools | length }} x", vec![]),
        (
            "unknown variable",
            "a\nb {{ nmae }}",
            vec![unknown(2, "nmae")],
        ),
        (
            "several, by line",
            "{{ zeta }}\n{{ project_name }} alpha {# alpha #}\n{% if alpha %}{% endif %}",
            vec![unknown(1, "zeta"), unknown(3, "alpha")],
        ),
        (
            "in a branch that is never taken",
            "x {% if false %}\n{{ secret }}\n{% endif %}",
            vec![unknown(2, "secret")],
        ),
        (
            "tested for being defined",
            "x {% if extra is defined %}{% endif %}",
            vec![unknown(1, "extra")],
        ),
        (
            "a function of the engine",
            "x\n{{ range(9) }}",
            vec![unknown(2, "range")],
        ),
        (
            "a dump of the state",
            "x {{ debug() }}",
            vec![unknown(1, "debug")],
        ),
        (
            "not an attribute of that name",
            "x {% for tool in tools %}{{ tool.name }}{% endfor %}\n{{ name }}",
            vec![unknown(2, "name")],
        ),
        (
            "not a part of a longer word",
            "x {{ project_name }} {{ tools | length }}\n{ {{ project }}",
            vec![unknown(2, "project")],
        ),
        (
            "attribute of a tool",
            "x\n{% for tool in tools %}\n{{ tool.schema }}{% endfor %}",
            vec![(Some(3), FileFault::Undefined)],
        ),
        (
            "filter",
            "x\n\n{{ project_name | shout }}",
            vec![(
                Some(3),
                FileFault::Failed("unknown filter: filter shout is unknown".to_owned()),
            )],
        ),
        (
            "endless work",
            &endless,
            vec![(Some(1), FileFault::OutOfFuel)],
        ),
        (
            "blank after rendering",
            "{# nothing #}",
            vec![(None, FileFault::Blank)],
        ),
        (
            "blank for some queries",
            "{% if query_type == 'code' %}x{% endif %}",
            vec![(None, FileFault::Blank)],
        ),
    ] {
        assert_eq!(problems("base.md", text), expected, "{name}");
    }
}

#[test]
fn a_syntax_error_is_refused_with_its_line() {
    for (name, text, line) in [
        ("open tag", "a\n{{ project_name", 2),
        ("open block", "a\n{% if tools %}\nb\n", 3),
        ("unknown statement", "a\n\n{% frobnicate %}", 3),
        ("no files from templates", "{% include 'base.md' %}", 1),
    ] {
        let found = problems("signals.md", text);
        assert!(
            matches!(&found[..], [(Some(at), FileFault::Syntax(why))] if *at == line && !why.is_empty()),
            "{name}: {found:?}"
        );
    }
}

#[test]
fn optional_segment_may_render_blank() {
    assert_eq!(problems("code-analysis.md", "{# nothing for now #}"), []);
}

#[test]
fn an_error_names_file_line_and_remedy() {
    let broken = |line, fault| BrokenFile {
        file: "prompts/base.md".to_owned(),
        line,
        fault,
    };
    let shown = [
        broken(Some(3), FileFault::UnknownVariable("nmae".to_owned())),
        broken(
            Some(1),
            FileFault::Syntax("unexpected end of input".to_owned()),
        ),
        broken(Some(7), FileFault::Undefined),
        broken(None, FileFault::Empty),
    ];
    let expected = "`prompts/base.md` line 3: unknown variable `nmae`: use project_name, \
         project_context, max_turns, tools or query_type
`prompts/base.md` line 1: syntax error (unexpected end of input): write literal braces as \
         `{{ \"{{\" }}`
`prompts/base.md` line 7: undefined value: a tool has name, summary and needed, and no variable \
         has other parts
`prompts/base.md`: empty: write a prompt, or remove it to use the built-in one";
    assert_eq!(Error::Files(shown.to_vec()).to_string(), expected);
}

#[test]
fn values_are_rendered_verbatim() {
    let variables = Variables {
        sub_agents: Vec::new(),
        project_name: "{{ max_turns }} {% raw %}".to_owned(),
        project_context: "<b>&amp;\"'\n{# kept #}".to_owned(),
        max_turns: Some(7),
        tools: vec![tool("{{ query_type }}", ToolNeed::Code)],
    };
    let text = "{{ project_name }}|{{ project_context }}|{{ max_turns }}|\
                {% for tool in tools %}{{ tool.name }}|{{ tool.needed }}{% endfor %}|{{ query_type }}";
    let prompts = prompts(&[("base.md", text)]).unwrap();
    let values = variables
        .prepare()
        .values(QueryType::Code, ToolDetail::Whole);
    assert_eq!(
        prompts.render(&prompts.files()[0], &values).unwrap(),
        "{{ max_turns }} {% raw %}|<b>&amp;\"'\n{# kept #}|7|{{ query_type }}|True|code"
    );
}

#[test]
fn variables_default_to_empty() {
    let text = "[{{ project_name }}{{ project_context }}{{ max_turns }}{{ tools | join }}]";
    let prompts = prompts(&[("base.md", text)]).unwrap();
    let values = Variables::default()
        .prepare()
        .values(QueryType::Code, ToolDetail::Whole);
    assert_eq!(prompts.render(&prompts.files()[0], &values).unwrap(), "[]");
}

#[test]
fn block_tags_leave_no_blank_lines() {
    let text = "\n  {% if true %}\n  a\n  {% endif %}\nb {{ max_turns }}\n\n\n";
    let prompts = prompts(&[("base.md", text)]).unwrap();
    let values = Variables::default()
        .prepare()
        .values(QueryType::Code, ToolDetail::Whole);
    assert_eq!(
        prompts.render(&prompts.files()[0], &values).unwrap(),
        "  a\nb"
    );
}
