use reqwest::header::HeaderMap;

use super::{
    super::{in_reply, instead_of_reply, of_answer},
    *,
};

/// Rows of the file beside: code, status, source and text.
fn rows() -> impl Iterator<Item = [&'static str; 4]> {
    let lines = include_str!("wordings.txt").lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| {
        let mut fields = line.splitn(4, "::").map(str::trim);
        std::array::from_fn(|_| fields.next().unwrap())
    })
}

#[test]
fn real_wordings_have_their_meaning() {
    let mut wrong = Vec::new();
    for [code, status, source, text] in rows() {
        let json = match text.starts_with(['{', '[']) {
            true => text.to_owned(),
            false => serde_json::json!({"error": {"message": text}}).to_string(),
        };
        let fault = match status.parse().unwrap() {
            200 => instead_of_reply(&json).unwrap_or_else(|| in_reply(&json)),
            status => of_answer(status, &HeaderMap::new(), json.as_bytes()),
        };
        if fault.code.as_str() != code {
            wrong.push(format!(
                "{} instead of {code}: {source}: {text}",
                fault.code
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rows().filter(|row| row[0] == "context").count() >= 60);
    assert!(rows().filter(|row| row[0] == "bad_request").count() >= 50);
}

#[test]
fn rules_name_features_and_codes_that_exist() {
    let Meanings {
        names,
        features,
        rules,
    } = &*MEANINGS;
    let known = |code: &str| !matches!(Code::from(code), Code::Other(_));
    assert!(rules.len() > 9 && names.keys().all(|code| known(code)));
    for [code, codes, needed] in rules {
        assert!(known(code), "{code}");
        for code in codes.split(' ') {
            assert!(known(code) || ["-", "open"].contains(&code), "{code}");
        }
        for feature in needed.split([' ', '~']) {
            let feature = feature.trim_start_matches('!');
            let computed = ["#asks_for_more", "#descends", "#of_the_reply"].contains(&feature);
            assert!(computed || features.contains_key(feature), "{feature}");
        }
    }
    let listed = features.values().flat_map(|list| list.split('|'));
    for phrase in listed {
        assert!(
            !phrase.trim().is_empty() && !phrase.trim().contains('\n'),
            "{phrase:?}"
        );
    }
}
