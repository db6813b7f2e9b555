//! What questions want to hear about.

use super::*;

#[test]
fn questions_tell_where_they_are_to_be_looked_up() {
    use Interest::{History, Notes, Overview, Places, Settled, Uses};
    let (first, latest) = (History(Change::First), History(Change::Latest));
    for (question, interest) in [
        ("where is the parser?", Places),
        ("when is a session removed?", Places),
        ("who calls parse_config?", Uses),
        ("where is back_off used?", Uses),
        ("wo wird back_off aufgerufen?", Uses),
        ("what is back_off used for?", Places),
        ("what are methods called that end it?", Places),
        ("how are users of the API authenticated?", Places),
        ("how many callers of parse_config are there?", Uses),
        ("is the user who added an item told?", Places),
        ("do you know who added it?", first),
        ("Welche Commits haben den Cache geändert?", latest),
        ("where is Decision defined?", Places),
        ("what does Overview do?", Places),
        ("where are release notes generated?", Places),
        ("why do we keep orders in SQLite?", Notes),
        ("who may write to the journal?", Places),
        ("why was my request dropped?", Places),
        ("how does the last attempt end?", Places),
        ("since which version is there a cache?", Places),
        ("what does the commit method do?", Places),
        ("when was the cache added?", first),
        ("who wrote the parser?", first),
        ("who last changed the parser?", latest),
        ("who has recently fixed the parser?", latest),
        ("who did add the cache?", first),
        ("who else changed src/a.rs?", latest),
        ("who was it that removed the cache?", latest),
        ("who was it that wrote the parser?", first),
        ("tell me who wrote it", first),
        (
            "who may write to the journal after the session was created?",
            Places,
        ),
        ("who is told when an approval is added?", Places),
        ("who closes the file once it was created?", Places),
        ("when was it called after it was created?", Places),
        ("when was the cache added before the release?", first),
        ("wer hat den cache hinzugefügt?", first),
        ("von wem wurde der cache geändert?", latest),
        (
            "wer schließt die datei, nachdem sie angelegt wurde?",
            Places,
        ),
        ("wer hat zugriff, nachdem sie angelegt wurde?", Places),
        ("qui l'a écrit ?", first),
        ("qui ferme le fichier qui a été créé ?", Places),
        ("¿quién lo cambió?", latest),
        ("¿quién ha eliminado la caché?", latest),
        ("¿quién cierra el archivo que se creó?", Places),
        ("et qui l'appelle ?", Uses),
        ("¿y quién lo llama?", Uses),
        ("when did you add the cache", first),
        ("why was the retry removed?", latest),
        ("show me the last commits", latest),
        ("what has been changed recently?", latest),
        ("show me the last 3 commits", latest),
        ("what changed last week?", latest),
        ("what did we change yesterday?", latest),
        ("what commits were made in November 2026?", latest),
        ("what happened on 2026-11-21?", latest),
        ("what changed since 2026-11-20", latest),
        ("how many commits are there?", latest),
        ("was ist gestern passiert?", latest),
        ("qu'est-ce qui a changé hier ?", latest),
        ("¿qué cambió la semana pasada?", latest),
        ("what was decided last week?", Settled),
        ("what changed since version 1.5?", Places),
        ("how are entries of the last 7 days removed?", Places),
        ("what happens to a session at midnight?", Places),
        ("les 3 derniers commits", latest),
        ("los últimos 4 commits", latest),
        (
            "what is the number of commits shown by history search?",
            Places,
        ),
        ("how many commits per day are allowed?", Places),
        ("how many commits does a revwalk return?", Places),
        ("how many commits do we have?", latest),
        ("how many commits touch the cache?", latest),
        ("how many commits did ann make?", latest),
        ("what happens if a certificate expired yesterday?", Places),
        (
            "was passiert mit zertifikaten, die gestern abgelaufen sind?",
            Places,
        ),
        ("what happens to timestamps after 2038?", Places),
        ("what is done for tasks of today?", Places),
        ("what is done in 2038 with dates?", Places),
        ("what happens with caches of the last month?", Places),
        ("what happens to files that were changed yesterday?", Places),
        ("what was it that changed yesterday?", latest),
        ("list the files that changed yesterday", latest),
        ("what was done yesterday?", latest),
        ("what did you do today?", latest),
        ("was wurde gestern gemacht?", latest),
        ("qu'avons-nous fait hier ?", latest),
        ("git blame of src/main.rs", latest),
        ("which log file is written today?", Places),
        ("what is the name of the log of yesterday?", Places),
        ("which file is created today?", Places),
        ("what was written yesterday?", latest),
        ("what is new since Friday?", latest),
        ("was wurde hier geändert?", Places),
        ("how many commits by Bob?", latest),
        ("commits by Bob", latest),
        ("what did Ann change in 2024?", latest),
        ("what was the first commit after 2024-02-01?", first),
        ("which of the last 20 commits touched the cache?", latest),
        ("which commit introduced max_turns", first),
        ("wann wurde der cache eingeführt?", first),
        ("qui a modifié le cache ?", latest),
        ("¿cuándo se añadió la caché?", first),
        ("what is this project about?", Overview),
        ("give me an overview of the journal", Overview),
        ("how is the code organised?", Overview),
        ("wie ist das projekt aufgebaut?", Overview),
        ("what was decided about sqlite?", Settled),
        (
            "notes of the last meeting",
            Interest::Listed(Listing::Newest("meeting")),
        ),
        ("notes on the release", Notes),
        ("was steht in den notizen zum umzug?", Notes),
        ("", Places),
    ] {
        assert_eq!(Interest::of(question), interest, "{question}");
    }
}

#[test]
fn words_that_say_only_that_are_no_subject() {
    assert!(
        ["derniers", "últimos", "letzten"]
            .into_iter()
            .all(is_change)
    );
    assert!(is_change("added") && is_change("commits") && !is_change("cache"));
    assert!(is_whole("project") && !is_whole("cache"));
    assert!(is_settled("agreed") && !is_settled("notes"));
    assert!(is_noted("notes") && is_name("Meeting") && !is_name("meeting") && !is_name("ADR"));
}
