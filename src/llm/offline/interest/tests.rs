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
        ("git blame of src/main.rs", latest),
        ("which commit introduced max_turns", first),
        ("wann wurde der cache eingeführt?", first),
        ("qui a modifié le cache ?", latest),
        ("¿cuándo se añadió la caché?", first),
        ("what is this project about?", Overview),
        ("give me an overview of the journal", Overview),
        ("how is the code organised?", Overview),
        ("wie ist das projekt aufgebaut?", Overview),
        ("what was decided about sqlite?", Settled),
        ("notes of the last meeting", Settled),
        ("notes on the release", Notes),
        ("was steht in den notizen zum umzug?", Notes),
        ("", Places),
    ] {
        assert_eq!(Interest::of(question), interest, "{question}");
    }
}

#[test]
fn words_that_say_only_that_are_no_subject() {
    assert!(is_change("added") && is_change("commits") && !is_change("cache"));
    assert!(is_whole("project") && !is_whole("cache"));
    assert!(is_settled("agreed") && !is_settled("notes"));
    assert!(is_noted("notes") && is_name("Meeting") && !is_name("meeting") && !is_name("ADR"));
}
