//! Small talk: phrases of it, and what may stand beside them.

use super::{super::words::words, holds};

/// Most words of small talk.
const LONGEST: usize = 16;

/// Most pieces of small talk that are taken from one text.
const MOST_PIECES: usize = 8;

/// What kind of small talk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Chat {
    /// Who are you?
    Identity,
    /// Tell me a joke.
    Jest,
    /// That was not what I meant.
    Misunderstood,
    /// Thank you.
    Thanks,
    /// Bye.
    Farewell,
    /// Hello.
    Greeting,
    /// Great job.
    Praise,
    /// OK.
    Acknowledgement,
}

/// Phrases of small talk, without marks. Of several in one message, the kind that stands first here
/// counts.
const CHAT: &[(Chat, &str)] = &[
    (
        Chat::Identity,
        "who are you | what are you | what can you do | what do you do | can you help me | how can \
         you help me | how can you help | what can you help me with | what can you help with | help me | \
         help | wer bist du | was kannst du | wie kannst du mir helfen | wie kannst du helfen | qui es tu | qui êtes vous | comment peux tu m aider | que \
         peux tu faire | quién eres | cómo puedes ayudarme | qué puedes hacer",
    ),
    (
        Chat::Jest,
        "tell me a joke | tell us a joke | tell a joke | know a joke | know any jokes | make me laugh | \
         say something funny | tell me a story | sing me a song | sing a song | erzähl mir einen witz | \
         erzähl einen witz | raconte moi une blague | cuéntame un chiste",
    ),
    (
        Chat::Misunderstood,
        "not what i meant | isn t what i meant | wasn t what i meant | not what i asked | isn t what i \
         asked | wasn t what i asked | not what i wanted | isn t what i wanted | wasn t what i wanted | \
         not what i was looking for | isn t what i was looking for | not what i am looking for | that s \
         not it | that is not it | you misunderstood | you got me wrong | wrong answer | bad answer | \
         that s wrong | that is wrong | that was wrong | this is wrong | that s not right | that is not \
         right | did not help | didn t help | das meinte ich nicht | das habe ich nicht gemeint | das \
         ist falsch | ce n est pas ce que je voulais dire | ce n est pas ça | no es lo que quería decir \
         | no era eso | no es eso",
    ),
    (
        Chat::Thanks,
        "thank you | thanks | thank u | thx | ty | tysm | cheers | much appreciated | appreciate it | \
         appreciate that | much obliged | merci | je te remercie | je vous remercie | danke | \
         dankeschön | vielen dank | besten dank | herzlichen dank | gracias | te agradezco | grazie | \
         obrigado | obrigada | 谢谢 | ありがとう",
    ),
    (
        Chat::Farewell,
        "goodbye | good bye | bye | bye bye | see you | see ya | good night | have a nice day | have a \
         good day | have a good one | take care | ciao | tschüss | auf wiedersehen | bis bald | bis \
         später | gute nacht | au revoir | à bientôt | bonne journée | bonne nuit | adieu | adiós | \
         hasta luego | hasta pronto",
    ),
    (
        Chat::Greeting,
        "how are you | how are you doing | how is it going | how s it going | how do you do | what s up \
         | nice to meet you | good morning | good afternoon | good evening | hello | hi | hey | howdy | \
         greetings | hallo | moin | servus | guten tag | guten morgen | guten abend | grüß gott | wie \
         geht s | wie geht es | bonjour | bonsoir | salut | ça va | comment ça va | comment vas tu | \
         comment allez vous | hola | buenos días | buenas tardes | buenas noches | qué tal | cómo estás \
         | cómo está usted | 你好 | こんにちは",
    ),
    (
        Chat::Praise,
        "good job | great job | nice job | excellent job | good work | great work | nice work | \
         excellent work | well done | good answer | great answer | nice answer | i love it | love it | i \
         like it | i like that | that helped | this helped | it helped | that helps | this helps | very \
         helpful | it works | it worked | that works | that worked | this works | works now | exactly \
         what i needed | just what i needed | what i was looking for | what i wanted | good bot | you \
         rock | you are great | you re great | you are awesome | you re awesome | you are the best | you \
         re the best | great | perfect | awesome | amazing | brilliant | excellent | wonderful | \
         fantastic | impressive | wow | bravo | gut gemacht | sehr gut | das hat geholfen | bien joué | \
         très bien | génial | parfait | c est parfait | bien hecho | muy bien | perfecto | genial",
    ),
    (
        Chat::Acknowledgement,
        "got it | i see | i understand | sounds good | makes sense | never mind | nevermind | forget it \
         | no problem | no worries | all right | alright | ok | okay | yes | no | yep | nope | yeah | \
         sure | fine | cool | nice | good | lol | lmao | rofl | haha | hahaha | hehe | ha | xd | alles \
         klar | d accord | de acuerdo | vale | sorry | excuse me | my bad | my mistake | ja | nein | \
         entschuldigung | entschuldige | tut mir leid | vergiss es | oui | désolé | désolée | pardon | \
         excusez moi | excuse moi | oublie ça | sí | perdón | perdona | disculpa | lo siento | olvídalo",
    ),
];

/// Words that may stand beside small talk without making it a question.
const FILLER: &str = "\
    a again all also am and answer any are as but day did dear everyone exactly explanation for friend friends good great guys \
    have helped helpful helps i indeed info information is it kind later like liked lot lots love loved m man mate me much \
    my oh once oracle please quick re really s so such that the then there this to today too truly u \
    ve very was well were with you your \
    aber alles bitte das deine dir die du es für geholfen gut hat hilfe ich ihnen ihre ist prima schön \
    sehr super toll und war \
    aide aujourd beaucoup bien c ce cette est et hui infiniment l pour réponse ta toi ton tout toute \
    très tu un une vous votre \
    amigo ayuda con de es esta ha la mil muchas muchísimas mucho muy por que respuesta su sido todo tu \
    usted";

/// What may stand before a question without a mark behind it, longer ones first; and what behind it.
const OPENING: &str = "\
    good morning | good afternoon | good evening | hello there | hi there | hey there | thanks a lot | thank you | \
    guten morgen | guten abend | guten tag | grüß gott | vielen dank | buenos días | buenas tardes | buenas noches \
    | muchas gracias | hello | hi | hey | hallo | moin | servus | bonjour | bonsoir | salut | hola | buenas | \
    thanks | danke | gracias | excuse me | sorry | entschuldigung | pardon | perdón | what i meant was | i meant | \
    i mean | i was looking for | i am looking for | i m looking for | looking for | ich meinte | ich meine | ich \
    suche nach | ich suche | je voulais dire | je cherche | quería decir | quise decir | estoy buscando | busco | \
    kannst du mir bitte sagen | kannst du mir bitte zeigen | könntest du mir bitte sagen | könntest du mir bitte \
    zeigen | können sie mir bitte sagen | können sie mir bitte zeigen | könnten sie mir bitte sagen | könnten sie \
    mir bitte zeigen | kannst du mir sagen | könntest du mir sagen | können sie mir sagen | könnten sie mir sagen \
    | kannst du mir zeigen | könntest du mir zeigen | können sie mir zeigen | könnten sie mir zeigen | sag mir | \
    zeig mir | walk me through | walk us through | run me through | run us through | talk me through | take me through | guide me \
    through | can you walk me through | can you run me through | can you talk me through | can you take me through | \
    could you walk me through | could you run me through | could you talk me through | please walk me through | please \
    run me through | führ mich durch | führe mich durch | weißt du | wissen sie | peux tu me dire | pourrais tu me dire | pouvez vous me dire | pourriez vous \
    me dire | peux tu me montrer | pouvez vous me montrer | dis moi | dites moi | montre moi | sais tu | savez \
    vous | puedes decirme | podrías decirme | puede decirme | me puedes decir | me podrías decir | puedes \
    mostrarme | dime | muéstrame | sabes";
const CLOSING: &str = "\
    i mean | i meant | please | thanks a lot | many thanks | thank you | thanks | bitte | vielen dank | danke \
    schön | danke | s il te plaît | s il vous plaît | merci d avance | merci beaucoup | merci | por favor | \
    muchas gracias | gracias de antemano | gracias";

/// A text without the small talk before and behind what it asks; all of it if it asks nothing else. Each
/// piece takes a look at the whole text, so callers cut long ones.
pub(in super::super) fn without_talk(text: &str) -> &str {
    let mut rest = text.trim();
    for _ in 0..MOST_PIECES {
        let words = spans(rest);
        let less = without_opening(rest, &words).or_else(|| without_closing(rest, &words));
        let Some(less) = less else { break };
        rest = less;
    }
    rest
}

fn without_opening<'a>(text: &'a str, words: &[(usize, usize)]) -> Option<&'a str> {
    let clause = clause_ends(text).next().unwrap_or_default();
    let by_clause = is_talk(&text[..clause]).then_some(clause);
    let by_phrase = || {
        phrases(OPENING).find_map(|phrase| {
            let said = words.get(..phrase.len())?;
            let (_, end) = *said.last()?;
            (lower(text, said) == phrase && is_apart(&text[end..])).then_some(end)
        })
    };
    let (said, behind) = text.split_at(by_clause.or_else(by_phrase)?);
    let is_begun = |c: char| !c.is_whitespace() && !is_mark(c) && !matches!(c, ')' | '-');
    let behind = &behind[behind.find(is_begun)?..];
    (!said.contains(QUOTES) && !spans(behind).is_empty()).then_some(behind)
}

fn without_closing<'a>(text: &'a str, words: &[(usize, usize)]) -> Option<&'a str> {
    let ends = clause_ends(text).filter(|end| !spans(&text[*end..]).is_empty());
    let by_clause = ends.last().filter(|end| is_talk(&text[*end..]));
    let is_last = words.last().is_some_and(|(_, end)| is_apart(&text[*end..]));
    let by_phrase = || {
        phrases(CLOSING).find_map(|phrase| {
            let said = &words[words.len().checked_sub(phrase.len())?..];
            let (start, _) = *said.first()?;
            let begins = text[..start].ends_with(char::is_whitespace);
            (is_last && begins && lower(text, said) == phrase).then_some(start)
        })
    };
    let (before, said) = text.split_at(by_clause.or_else(by_phrase)?);
    let before = before.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
    (!said.contains(QUOTES) && !spans(before).is_empty()).then_some(before)
}

/// Small talk in quotes is what is looked for.
const QUOTES: &[char] = &['"', '`', '“', '”', '„', '«', '»'];

/// Whether what stands behind a phrase shows that it ends there: "hello.rs:4" and "hello-world" are names.
fn is_apart(behind: &str) -> bool {
    let rest = behind.trim_start_matches(is_mark);
    rest.is_empty() || rest.starts_with(char::is_whitespace)
}

fn is_talk(clause: &str) -> bool {
    chat_in(&clause.to_lowercase()).is_some()
}

/// Where clauses end: behind a mark that a blank follows.
fn clause_ends(text: &str) -> impl Iterator<Item = usize> {
    text.char_indices().filter_map(|(at, c)| {
        let end = at + c.len_utf8();
        let ends = c == '\n' || (is_mark(c) && text[end..].starts_with(char::is_whitespace));
        ends.then_some(end)
    })
}

const fn is_mark(c: char) -> bool {
    matches!(c, ',' | ';' | '.' | ':' | '!' | '?' | '…' | '–' | '—')
}

fn phrases(list: &str) -> impl Iterator<Item = Vec<String>> {
    let phrases = list.split(" | ");
    phrases.map(|phrase| phrase.split_whitespace().map(str::to_owned).collect())
}

/// Where the words of a text begin and end.
fn spans(text: &str) -> Vec<(usize, usize)> {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for (at, c) in text
        .char_indices()
        .filter(|(_, c)| c.is_alphanumeric() || *c == '_')
    {
        let end = at + c.len_utf8();
        match spans.last_mut() {
            Some(last) if last.1 == at => last.1 = end,
            _ => spans.push((at, end)),
        }
    }
    spans
}

fn lower(text: &str, spans: &[(usize, usize)]) -> Vec<String> {
    let words = spans
        .iter()
        .map(|(start, end)| text[*start..*end].to_lowercase());
    words.collect()
}

/// The small talk that a text is: phrases of it with nothing but filler around them. Lower-case.
pub(in super::super) fn chat_in(lower: &str) -> Option<Chat> {
    let said: Vec<&str> = words(lower).filter(|word| !word.is_empty()).collect();
    if said.len() > LONGEST {
        return None;
    }
    let mut rest = format!(" {} ", said.join(" "));
    let mut kind = None;
    for (chat, phrases) in CHAT {
        let mut phrases: Vec<&str> = phrases.split(" | ").collect();
        // "How are you doing" before "how are you".
        phrases.sort_by_key(|phrase| std::cmp::Reverse(phrase.len()));
        for phrase in phrases {
            let phrase = format!(" {phrase} ");
            while rest.contains(&phrase) {
                rest = rest.replacen(&phrase, " ", 1);
                kind = kind.or(Some(*chat));
            }
        }
    }
    // "It works" is praise, "it works?" is none.
    kind.filter(|chat| *chat != Chat::Praise || !lower.contains('?'))
        .filter(|_| rest.split_whitespace().all(|word| holds(FILLER, word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_talk_is_taken_from_what_is_asked() {
        for (text, rest) in [
            ("good morning, where is the parser?", "where is the parser?"),
            ("Good morning where is the parser?", "where is the parser?"),
            ("Hallo! Guten Tag, wo ist der Parser?", "wo ist der Parser?"),
            ("bonjour, où est le parser ?", "où est le parser ?"),
            ("Hola, buenos días, ¿dónde está?", "¿dónde está?"),
            ("no, I meant request_seen", "request_seen"),
            ("sorry, request_seen I mean", "request_seen"),
            ("forget it, where are the eggs?", "where are the eggs?"),
            ("I'm looking for the parser", "the parser"),
            ("Kannst du mir sagen, wo es ist?", "wo es ist?"),
            ("walk me through the handshake", "the handshake"),
            ("Could you run me through how it ends?", "how it ends?"),
            ("Peux-tu me dire où c'est ?", "où c'est ?"),
            ("¿Puedes decirme dónde está?", "dónde está?"),
            ("where is it? Thanks a lot!", "where is it?"),
            ("où est le parser, s'il te plaît ?", "où est le parser"),
            ("hi, src/main.rs", "src/main.rs"),
            ("hi `_x`", "`_x`"),
            ("hello :) where is it", "where is it"),
            ("Hello there!", "Hello there!"),
            ("thanks, merci", "merci"),
            ("where is hello printed", "where is hello printed"),
            ("how do you do retries?", "how do you do retries?"),
            ("\"hello, world\" in a.rs", "\"hello, world\" in a.rs"),
            ("who says `not now, please`", "who says `not now, please`"),
            ("help.rs: what does it do", "help.rs: what does it do"),
            ("hello.rs:4", "hello.rs:4"),
            ("sorry.html:1", "sorry.html:1"),
            ("hello-world crate", "hello-world crate"),
            (
                "which page shows thanks.html",
                "which page shows thanks.html",
            ),
            ("who calls thanks()", "who calls thanks()"),
            ("what prints html.thanks", "what prints html.thanks"),
            ("hello… where is it", "where is it"),
            ("", ""),
        ] {
            assert_eq!(without_talk(text), rest, "{text}");
        }
    }
}
