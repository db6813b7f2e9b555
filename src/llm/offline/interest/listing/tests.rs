//! Questions for lists, and those that only sound like them.

use super::*;

fn tasks(state: State, are_marked: bool) -> Option<Listing> {
    Some(Listing::Tasks(Tasks { state, are_marked }))
}

#[test]
fn lists_are_told_by_the_form_of_a_question() {
    let open = tasks(State::Open, false);
    let marked = tasks(State::Open, true);
    for (question, listing, subject) in [
        ("what are my open to-dos?", marked, ""),
        ("list open todos", marked, ""),
        ("open TODOs", marked, ""),
        ("are there any TODOs left?", marked, ""),
        ("unchecked tasks", open, ""),
        ("open action items for Ben", marked, "Ben"),
        ("what does Anna have to do?", open, "Anna"),
        ("what do I have to do?", open, ""),
        ("what is left to do?", open, ""),
        (
            "what is still to be done for Lighthouse?",
            open,
            "Lighthouse",
        ),
        ("Welche offenen Aufgaben hat Ben?", open, "Ben"),
        ("Was muss Anna noch tun?", open, "Anna"),
        ("Was ist noch zu tun?", open, ""),
        ("what are Ben's tasks", open, "Ben"),
        ("What tasks does Anna have?", open, "Anna"),
        ("which tasks are not done?", open, ""),
        ("open tasks about certificates", open, "certificates"),
        ("how many open tasks are there?", open, ""),
        ("Quelles sont les tâches ouvertes de Ben ?", open, "Ben"),
        ("Que doit faire Anna ?", open, "Anna"),
        ("¿Qué tareas pendientes tiene Ben?", open, "Ben"),
        ("¿Qué tiene que hacer Anna?", open, "Anna"),
        ("which tasks are done?", tasks(State::Done, false), ""),
        (
            "finished action items of Ben",
            tasks(State::Done, true),
            "Ben",
        ),
        ("erledigte Aufgaben", tasks(State::Done, false), ""),
        ("open and done tasks", tasks(State::All, false), ""),
        ("how are open tasks cancelled?", None, ""),
        ("where are todos stored?", None, ""),
        ("what is a task?", None, ""),
        ("which open tasks are cancelled at shutdown?", None, ""),
        ("what does the client have to do to connect?", None, ""),
        ("what does Session have to do with turns?", None, ""),
        ("what do tasks share?", None, ""),
        ("tasks of the scheduler", None, ""),
        ("what links to beacon?", Some(Listing::Linking), "beacon"),
        ("backlinks of beacon", Some(Listing::Linking), "beacon"),
        (
            "which notes link to [[Light House]]?",
            Some(Listing::Linking),
            "[[Light House]]",
        ),
        (
            "Welche Notizen verlinken auf beacon?",
            Some(Listing::Linking),
            "beacon",
        ),
        ("how does the parser handle links to files", None, ""),
        ("are there broken links?", Some(Listing::Broken), ""),
        (
            "which notes are tagged incident?",
            Some(Listing::Tagged),
            "incident",
        ),
        (
            "which notes mention the journal?",
            Some(Listing::Mentioning),
            "journal",
        ),
        (
            "list all notes that mention API keys",
            Some(Listing::Mentioning),
            "API keys",
        ),
        (
            "In which notes is Ben Lee mentioned?",
            Some(Listing::Mentioning),
            "Ben Lee",
        ),
        (
            "Welche Notizen erwähnen das Journal?",
            Some(Listing::Mentioning),
            "Journal",
        ),
        (
            "which documents contain the word actor?",
            Some(Listing::Mentioning),
            "actor",
        ),
        (
            "which documents contain the phrase \"light house\"?",
            Some(Listing::Mentioning),
            "light house",
        ),
        (
            "In which notes is the name Ben Lee mentioned?",
            Some(Listing::Mentioning),
            "Ben Lee",
        ),
        (
            "Welche Notizen enthalten das Wort Akteur?",
            Some(Listing::Mentioning),
            "Akteur",
        ),
        (
            "which notes mention the text editor?",
            Some(Listing::Mentioning),
            "text editor",
        ),
        (
            "which notes mention the word?",
            Some(Listing::Mentioning),
            "word",
        ),
        ("which functions mention the journal?", None, ""),
        ("which commits mention notes?", None, ""),
        ("do not mention notes", None, ""),
        ("notes with tag #how-to", Some(Listing::Tagged), "how-to"),
        ("Notizen mit dem Tag daily", Some(Listing::Tagged), "daily"),
        (
            "which decisions are still proposed?",
            Some(Listing::Standing("proposed")),
            "",
        ),
        (
            "list superseded ADRs",
            Some(Listing::Standing("superseded")),
            "",
        ),
        ("which decision rejected GraphQL?", None, ""),
        (
            "what was discussed in the last meeting?",
            Some(Listing::Newest("meeting")),
            "",
        ),
        (
            "Was wurde in der letzten Besprechung besprochen?",
            Some(Listing::Newest("meeting")),
            "",
        ),
        (
            "what is the latest decision?",
            Some(Listing::Newest("decision")),
            "",
        ),
        (
            "what was decided about caching in the last big meeting of Ann?",
            None,
            "",
        ),
    ] {
        let found = Listing::of(question);
        let (what, of) = found.map_or((None, String::new()), |(what, of)| (Some(what), of));
        assert_eq!((what, &*of), (listing, subject), "{question}");
    }
}

#[test]
fn who_asks_what_it_is_says_no_more() {
    for (text, is) in [
        ("What is this?", true),
        ("what's this", true),
        ("what is this function for?", false),
        ("", false),
    ] {
        assert_eq!(asks_what_it_is(text), is, "{text}");
    }
}
