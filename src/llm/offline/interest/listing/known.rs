//! What asks for links and tags of notes, for how decisions stand, and for the newest of them.

use super::super::super::lexicon::holds;
use super::{Listing, Said, telling};

/// A listing of those, and what tells them apart.
pub(super) fn of(question: &str, said: &[Said]) -> Option<(Listing, String)> {
    let text = line_of(said);
    if has_phrase(&text, BROKEN) {
        return Some((Listing::Broken, String::new()));
    }
    linking(question, said)
        .or_else(|| tagged(question, said))
        .or_else(|| standing(said))
        .or_else(|| newest(said, &text))
}

fn line_of(said: &[Said]) -> String {
    let words: Vec<&str> = said.iter().map(|word| &*word.lower).collect();
    format!(" {} ", words.join(" "))
}

fn has_phrase(text: &str, phrases: &str) -> bool {
    phrases
        .split(" | ")
        .any(|phrase| text.contains(&format!(" {phrase} ")))
}

/// "What links to beacon?", "backlinks of beacon".
fn linking(question: &str, said: &[Said]) -> Option<(Listing, String)> {
    let words: Vec<&str> = question.split_whitespace().collect();
    let lower: Vec<String> = words
        .iter()
        .map(|word| word.trim_matches(['?', '!', ',', '¿', '¡']).to_lowercase())
        .collect();
    let (at, parts) = LINKING.split(" | ").find_map(|phrase| {
        let parts: Vec<&str> = phrase.split(' ').collect();
        let at = lower.windows(parts.len()).position(|own| own == parts)?;
        Some((at, parts.len()))
    })?;
    let leads = lower[..at].iter().all(|word| holds(BEFORE_LINK, word));
    let begins = said.first().is_some_and(|word| word.is(BEFORE_LINK)) || at == 0;
    let behind = words.get(at + parts..)?.iter().zip(&lower[at + parts..]);
    let named = behind.skip_while(|(_, word)| holds(BEFORE_NAME, word));
    let named: Vec<&str> = named.map(|(word, _)| *word).collect();
    let name = named.join(" ");
    let name = name.trim_matches(['?', '!', '.', '"', '\'', '`', '“', '”', ' ']);
    let is_name = !name.is_empty() && named.len() <= MOST_OF_NAME;
    (leads && begins && is_name).then(|| (Listing::Linking, name.to_owned()))
}

/// "Which notes are tagged incident?", "notes with tag #incident".
fn tagged(question: &str, said: &[Said]) -> Option<(Listing, String)> {
    let is_of_notes = said.iter().any(|word| word.is(NOTES));
    let at = said.iter().position(|word| word.is(TAG));
    let by_sign = || {
        let mut words = question.split_whitespace();
        words.find_map(|word| word.strip_prefix('#'))
    };
    let name = match (at, by_sign()) {
        (_, Some(named)) if is_of_notes => named,
        (Some(_), None) if is_of_notes => {
            let mut words = question.split_whitespace();
            words.find(|word| holds(TAG, &bare(word).to_lowercase()));
            words.find(|word| !holds(BEFORE_NAME, &bare(word).to_lowercase()))?
        }
        _ => return None,
    };
    let leads = said.iter().take(2).any(|word| word.is(BEFORE_LINK));
    let name = bare(name);
    (leads && !name.is_empty()).then(|| (Listing::Tagged, name.to_owned()))
}

fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '/')))
}

/// "Which decisions are still proposed?"
fn standing(said: &[Said]) -> Option<(Listing, String)> {
    let noun = said.iter().any(|word| word.is(DECISIONS));
    let state = said.iter().find_map(|word| {
        let known = STATES.iter().find(|(_, list)| word.is(list))?;
        Some(known.0)
    });
    let lists = [DECISIONS, LEAD_OF_STATE, OF_SETTLING];
    let states = STATES.iter().map(|(_, list)| *list);
    let lists: Vec<&str> = lists.into_iter().chain(states).collect();
    let begins = said
        .first()
        .is_some_and(|word| lists.iter().any(|list| word.is(list)));
    let rest = telling(said.iter(), &lists);
    let state = state.filter(|_| noun && begins && rest.is_empty())?;
    Some((Listing::Standing(state), rest))
}

/// "What was discussed in the last meeting?"
fn newest(said: &[Said], text: &str) -> Option<(Listing, String)> {
    let last = said.iter().position(|word| word.is(LAST))?;
    let mut near = said.iter().skip(last.saturating_sub(1)).take(5);
    let kind = near.find_map(|word| {
        let kinds = [("meeting", MEETINGS), ("decision", DECISION)];
        kinds.into_iter().find(|(_, list)| word.is(list))
    });
    let (kind, _) = kind.filter(|_| !text.contains(" commit "))?;
    let rest = telling(
        said.iter(),
        &[MEETINGS, DECISION, LAST, OF_SETTLING, LEAD_OF_STATE],
    );
    let words = rest.split(' ').filter(|word| !word.is_empty()).count();
    (words <= 1).then_some((Listing::Newest(kind), rest))
}

/// Whether it asks what was settled, in a verb that no list of nouns has.
pub(in super::super) fn decides(said: &str) -> bool {
    has_phrase(said, DECIDING)
}

/// Whether it asks which thing of a kind is in use.
pub(in super::super) fn asks_for_use(said: &str) -> bool {
    let first = said.split_whitespace().next().unwrap_or_default();
    holds(
        "what which welche welches welchen quel quelle qué cuál",
        first,
    ) && has_phrase(said, USING)
}

/// Whether the word only says that something was settled or talked about.
pub(in super::super::super) fn is_of_decision(word: &str) -> bool {
    holds(OF_SETTLING, word)
}

/// Whether a text asks what all of this is, and says no more.
pub(in super::super::super) fn asks_what_it_is(text: &str) -> bool {
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let line = words.map(str::to_lowercase).collect::<Vec<_>>().join(" ");
    THIS.split(" | ").any(|phrase| line == phrase)
}

const BROKEN: &str = "\
    broken links | dead links | broken link | dead link | links broken | links are broken | links dead | links that lead \
    nowhere | dangling links | \
    kaputte links | kaputten links | tote links | toten links | defekte links | defekten links | liens cassés | liens \
    brisés | liens morts | enlaces rotos";

const LINKING: &str = "\
    backlinks of | backlinks to | backlinks for | backlinks from | backlinks von | backlinks zu | backlinks für | \
    backlinks de | links to | link to | linking to | linked to | verlinken auf | verlinkt auf | verweisen auf | \
    verweist auf | verlinken | verlinkt | pointent vers | pointe vers | renvoient à | renvoient vers | renvoie à | \
    rétroliens de | enlazan a | enlaza a | enlazan con | enlaza con | apuntan a";
/// What may stand before that.
const BEFORE_LINK: &str = "\
    what which who list show find give me all any the notes note pages page files documents places lines that are is has \
    have a with was welche welcher zeig zeige alle die notizen notiz seiten seite quelles quelle qu que quoi qui notes les \
    pages montre toutes qué cuáles que notas páginas las muestra todas";
const BEFORE_NAME: &str = "\
    the a note page notes about named called is the das dem der die den notiz seite auf zu mit la le les l note el nota \
    página of #";
/// Most words of the name of a note.
const MOST_OF_NAME: usize = 8;

const NOTES: &str = "note notes page pages notiz notizen seiten nota notas páginas";
const TAG: &str = "tag tags tagged getaggt schlagwort étiquette etiqueta etiquetadas";

const DECISIONS: &str = "\
    decisions decision adrs adr rfcs entscheidungen entscheidung décisions décision decisiones decisión";
/// How decisions stand, in the word of records, and as it is asked for.
const STATES: &[(&str, &str)] = &[
    (
        "proposed",
        "proposed vorgeschlagen vorgeschlagene vorgeschlagenen proposée proposées propuesta propuestas pending \
      open undecided",
    ),
    (
        "accepted",
        "accepted akzeptiert akzeptierte angenommen acceptée acceptées aceptada aceptadas",
    ),
    (
        "superseded",
        "superseded überholt abgelöst ersetzt remplacée remplacées reemplazadas sustituidas",
    ),
    (
        "rejected",
        "rejected abgelehnt abgelehnte rejetée rejetées rechazada rechazadas",
    ),
    ("deprecated", "deprecated veraltet veraltete"),
    ("draft", "draft drafts entwurf"),
];
const LEAD_OF_STATE: &str = "\
    which what list show me all the are is were any there still currently not yet have been give us when who \
    welche sind noch was zeig alle die wann quelles quelle sont encore toujours les toutes qué cuáles están son todavía \
    aún siguen las";

const LAST: &str = "\
    last latest newest recent letzte letzten letzter neueste neuesten jüngste jüngsten dernier dernière dernières último \
    última últimas";
const MEETINGS: &str = "\
    meeting meetings besprechung besprechungen sitzung sitzungen protokoll réunion réunions reunión reuniones minutes";
const DECISION: &str = "decision adr entscheidung décision decisión";
/// Words that say no more than that something was settled or talked about.
const OF_SETTLING: &str = "\
    decided decide deciding decides agreed agree settled discussed discuss talked about said happened happen topics \
    agenda attended took place notes most \
    beschlossen entschieden entscheiden besprochen geredet gesprochen vereinbart beim ging passierte \
    décidé décidés discuté dit parlé lors décider decidió decidido decidimos discutió habló trató";
const DECIDING: &str = "\
    did we decide | did they decide | did you decide | did the team decide | we decide on | did we agree | did they agree \
    | did the team agree | haben wir entschieden | haben wir beschlossen | avons nous décidé | hemos decidido | decidimos";
const USING: &str = "\
    do we use | are we using | do we run on | verwenden wir | benutzen wir | nutzen wir | utilisons nous | usamos | \
    utilizamos";
const THIS: &str = "\
    what is this | what s this | whats this | what is all this | what is in here | what is here | was ist das | was ist \
    das hier | c est quoi | qu est ce que c est | qué es esto | what are these notes | what is this vault | what is in \
    this vault | what is this folder | what are these notes about";
