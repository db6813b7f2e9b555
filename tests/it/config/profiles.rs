//! `[[profiles]]`: parsing, reports of mistakes, and the effect.

use oracle_agent::config::Origin;

use super::{from_file, problems, sources};

const TWO: &str = "[oracle]\nmax_turns = 20\n\
                   [[profiles]]\nname = 'quick'\nmax_turns = 3\ninstructions = 'Be brief.'\n\
                   [[profiles]]\nname = 'cheap'\nchain = 'offline'\ntools = []\nattachable = ['file_read']\n";

#[test]
fn profile_overrides_only_what_it_sets() {
    let loaded = from_file(TWO);
    let [quick, cheap] = &loaded.config.profiles[..] else {
        panic!("two profiles: {:?}", loaded.config.profiles);
    };
    let (quick, cheap) = (quick.over(&loaded.config), cheap.over(&loaded.config));
    assert_eq!(quick.oracle.max_turns, 3);
    assert_eq!(quick.prompt.instructions.unwrap().as_str(), "Be brief.");
    assert_eq!(quick.model.chain, None);
    assert_eq!(cheap.oracle.max_turns, 20);
    assert_eq!(cheap.prompt.instructions, None);
    assert_eq!(cheap.model.chain.unwrap().models(), ["offline/offline"]);
    assert_eq!(cheap.tools.only.unwrap(), [""; 0]);
    assert_eq!(cheap.tools.attachable[0].as_str(), "file_read");
    let line = Origin::ConfigFile {
        path: "oracle.toml".into(),
        line: 5,
    };
    assert_eq!(loaded.origin("profiles.0.max_turns"), line);
    assert_eq!(loaded.origin("profiles.0.chain"), Origin::Default);
}

#[test]
fn every_profile_key_overrides_a_section_key() {
    let documented = include_str!("../../../config/oracle.toml");
    let (_, body) = documented.split_once("#[[profiles]]\n").unwrap();
    let (body, _) = body.split_once("# Model servers").unwrap();
    let lines = body.lines().filter_map(|line| line.strip_prefix('#'));
    let settings: Vec<&str> = lines.filter(|line| !line.starts_with(' ')).collect();
    for setting in settings {
        if ["name = ", "description = ", "sub_agent_of = "]
            .iter()
            .any(|key| setting.starts_with(key))
        {
            continue;
        }
        let file = format!("[[profiles]]\nname = 'x'\n{setting}\n");
        let config = from_file(&file).config;
        let over = config.profiles[0].over(&config);
        assert_ne!(over, config, "{setting} is without effect");
    }
}

#[test]
fn command_line_overrides_every_profile() {
    let file = "[[profiles]]\nname = 'quick'\nmax_turns = 3\nchain = 'a/b'\n";
    let options = [
        ("--max-turns", "oracle.max_turns", "7"),
        ("--model", "model.chain", "c/d"),
    ];
    let environment = [("ORACLE_MAX_TURNS", "9")];
    let of = |options: &[(&str, &str, &str)]| {
        let loaded = oracle_agent::config::load(&sources(file, &environment, options)).unwrap();
        let quick = loaded.config.profiles[0].over(&loaded.config);
        let chain = quick.model.chain.unwrap();
        (quick.oracle.max_turns, chain.models()[0].clone())
    };
    assert_eq!(of(&[]), (3, "a/b".to_owned()));
    assert_eq!(of(&options), (7, "c/d".to_owned()));
}

#[test]
fn profile_problems_are_one_line_each_and_reported_together() {
    let table = [
        (
            "no name",
            "[[profiles]]\n",
            "oracle.toml:1: [[profiles]] lacks the required key `name`",
        ),
        (
            "a name that is taken",
            "[[profiles]]\nname = 'oracle'\n",
            "oracle.toml:2: `profiles.name` is `'oracle'`, expected 1 to 128 characters from A-Z \
             a-z 0-9 . _ : -, but not \"oracle\", which the sections configure",
        ),
        (
            "no list",
            "[profiles]\nname = 'x'\n",
            "oracle.toml:1: `profiles` is `…`, expected a list: write the line \
             `[[profiles]]` with its keys below",
        ),
        (
            "twice the same, a wrong key and a wrong value",
            "[[profiles]]\nname = 'x'\nmax_turn = 1\n[[profiles]]\nname = 'x'\nmax_turns = 0\ntools = 'a b'\n",
            "oracle.toml:3: unknown key `profiles.max_turn` (set to `1`); did you mean \
             `profiles.max_turns`?\noracle.toml:6: `profiles.max_turns` is `0`, expected a \
             whole number from 1 to 100\noracle.toml:7: `profiles.tools` is `'a b'`, expected a \
             list of distinct tool names, each 1 to 64 characters from A-Z a-z 0-9 _ \
             -\noracle.toml:5: `profiles.name` is `x`, expected a name that no other profile has",
        ),
        (
            "a tool in both lists",
            "[tools]\nattachable = ['b']\n[[profiles]]\nname = 'x'\ntools = ['a', 'b']\n",
            "oracle.toml:5: `profiles.tools` is `b`, expected a tool that is not both available \
             from the start and in `attachable`",
        ),
        (
            "the same in a section",
            "[tools]\nonly = ['a']\nattachable = ['a']\n",
            "oracle.toml:3: `tools.attachable` is `a`, expected a tool that is not both available \
             from the start and in `attachable`",
        ),
        (
            "a parent that does not exist",
            "[[profiles]]\nname = 'x'\nsub_agent_of = ['oracle', 'x', 'y']\n",
            "oracle.toml:3: `profiles.sub_agent_of` is `y`, expected `oracle` or names of \
             [[profiles]]",
        ),
        (
            "a blank instruction",
            "[[profiles]]\nname = 'x'\ninstructions = ' '\ndescription = \"\"\"a\nb\"\"\"\n",
            "oracle.toml:3: `profiles.instructions` is `…`, expected 1 to 20000 characters, not \
             all of them blank\noracle.toml:4: `profiles.description` is `\"\"\"a\\nb\"\"\"`, \
             expected 1 to 200 characters on one line",
        ),
    ];
    for (name, file, says) in table {
        assert_eq!(
            problems(&sources(file, &[], &[])).join("\n"),
            says,
            "{name}"
        );
    }
}

#[test]
fn profiles_are_shown_as_loadable_toml() {
    let loaded = from_file(TWO);
    let shown = loaded.show(true).unwrap();
    assert_eq!(from_file(&shown).config, loaded.config);
    assert!(
        shown.contains("\n[[profiles]]\nname = \"quick\" # oracle.toml:4\n"),
        "{shown}"
    );
    assert!(
        shown.contains("# chain is not set\nmax_turns = 3 # oracle.toml:5\n"),
        "{shown}"
    );
}
