//! What asks for to-dos: a noun for them with what may stand around it, or that something is left to be done.

use super::{Listing, Said, State, Tasks, telling};

/// A listing of to-dos, and whose or about what they are.
pub(super) fn of(said: &[Said]) -> Option<(Listing, String)> {
    let are_marked = by_noun(said).or_else(|| is_left(said).then_some(false))?;
    let tasks = Tasks {
        state: state(said),
        are_marked,
    };
    let lists = [TODOS, TASKS, LEAD, OPEN, DONE, BEHIND, DOING, "hacer"];
    Some((Listing::Tasks(tasks), telling(said.iter(), &lists)))
}

/// Whether a noun for tasks is what the question is about; with it, whether lines of code are marked so.
fn by_noun(said: &[Said]) -> Option<bool> {
    let at = said
        .iter()
        .position(|word| word.is(TODOS) || word.is(TASKS))?;
    let (before, behind) = (&said[..at], &said[at + 1..]);
    let leads = before.iter().enumerate().all(|(at, word)| {
        let is_of_somebody = (at > 0 || before.get(1).is_some_and(|next| next.lower == "s"))
            && (word.is_name() || word.lower == "s");
        word.is(LEAD) || word.is(OPEN) || word.is(DONE) || word.is("not nicht") || is_of_somebody
    });
    if !leads || !may_follow(behind) {
        return None;
    }
    let is_todo = said[at].is(TODOS);
    // "Task" alone is a word of many projects.
    let is_stated = || {
        let around = before.iter().chain(behind.iter().take(NEAR));
        around.clone().any(|word| word.is(OPEN) || word.is(DONE))
    };
    let is_of_somebody = || {
        let has = |word: &Said| word.is(OWN) || (word.is_name() && !word.is(LEAD));
        let named = before.iter().skip(1).any(has) || before.first().is_some_and(|one| one.is(OWN));
        let of_name = behind.iter().take(NEAR).skip(1).any(Said::is_name);
        let s_genitive =
            before.first().is_some_and(Said::is_name) && before.len() > 1 && before[1].lower == "s";
        named || of_name || s_genitive
    };
    (is_todo || is_stated() || is_of_somebody()).then_some(is_todo)
}

/// So near behind the noun stands what tells which tasks are meant.
const NEAR: usize = 4;

/// Whether what stands behind the noun tells which tasks, and does not say what happens to them.
fn may_follow(behind: &[Said]) -> bool {
    let Some(first) = behind.first() else {
        return true;
    };
    let second = behind.get(1);
    let is_state = |word: &Said| {
        word.is(OPEN)
            || word.is(DONE)
            || word.is("there left still yet not noch nicht encore to on for i we todavía aún")
    };
    match () {
        () if first.is("are is were sind ist sont están está") => second.is_none_or(is_state),
        () => first.is(BEHIND) || first.is(OPEN) || first.is(DONE) || first.is_name(),
    }
}

/// "What does Anna have to do?", "what is left to do?"
fn is_left(said: &[Said]) -> bool {
    let words: Vec<&str> = said.iter().map(|word| &*word.lower).collect();
    let text = format!(" {} ", words.join(" "));
    let ends = |phrase: &str| {
        let at = text.find(&format!(" {phrase} "))?;
        let behind = text[at + phrase.len() + 1..].split_whitespace().next();
        Some(behind.is_none_or(|next| super::holds(AFTER_DOING, next)))
    };
    let asks = said.first().is_some_and(|word| word.is(WHAT));
    let is_said = LEFT.split(" | ").any(|phrase| ends(phrase) == Some(true));
    asks && (is_said || is_to_do(said))
}

/// What somebody, who is named or speaks, has to do.
fn is_to_do(said: &[Said]) -> bool {
    DUTIES.iter().any(|(before, behind)| {
        let parts = |phrase: &'static str| phrase.split(' ').filter(|part| !part.is_empty());
        let leads = parts(before).count();
        let begins = said
            .iter()
            .zip(parts(before))
            .all(|(word, part)| word.lower == part);
        let ends = parts(behind).count();
        let Some(rest) = said
            .get(leads..)
            .filter(|_| begins && said.len() > leads + ends)
        else {
            return false;
        };
        let whom = rest.iter().take_while(|word| {
            word.is_name()
                || word.is("i we ich wir noch still je nous yo on")
                || word.is(SAID_OF_WHOM)
        });
        let count = whom.clone().count();
        let is_somebody = whom
            .clone()
            .any(|word| word.is_name() || word.is("i we ich wir je nous"));
        let tail = rest.get(count..).unwrap_or_default();
        let is_end = tail.len() >= ends
            && tail
                .iter()
                .zip(parts(behind))
                .all(|(word, part)| word.lower == part);
        let after = tail.get(ends).is_none_or(|word| word.is(AFTER_DOING));
        count > 0 && is_somebody && is_end && after
    })
}

fn state(said: &[Said]) -> State {
    let words: Vec<&str> = said.iter().map(|word| &*word.lower).collect();
    let text = format!(" {} ", words.join(" "));
    let has = |list: &str| said.iter().any(|word| word.is(list));
    let is_denied = DENIED
        .split(" | ")
        .any(|phrase| text.contains(&format!(" {phrase} ")));
    match (has(OPEN), has(DONE) && !is_denied) {
        (true, true) => State::All,
        (false, true) => State::Done,
        (_, false) => State::Open,
    }
}

const TODOS: &str = "todo todos fixme fixmes";
const TASKS: &str = "task tasks items checkboxes boxes aufgabe aufgaben tâche tâches tarea tareas";

/// What may stand before them.
const LEAD: &str = "\
    and or und oder et ou what which who list show give tell me us all any every the my our are is were there still have has i we of find get \
    count howmany do does did s please whats \
    was welche welcher welches welchen zeig zeige zeigt mir uns alle die das meine meinen unsere unseren gibt es sind \
    noch habe haben hat ich wir liste nenne \
    quelles quels quelle sont les des mes nos toutes tous montre moi liste ai avons a il y \
    qué cuáles cuántas son hay las los mis nuestras nuestros todas muestra lista tengo tenemos tiene";
/// Whose they are.
const OWN: &str = "my our mes nos mis nuestras meine meinen unsere unseren";

const OPEN: &str = "\
    open unchecked unfinished outstanding pending remaining undone unresolved incomplete unticked uncompleted left \
    offen offene offenen offener unerledigt unerledigte unerledigten ausstehende ausstehenden \
    ouvert ouverts ouverte ouvertes inachevées restantes restants \
    abierto abiertos abierta abiertas pendiente pendientes incompletas";
const DONE: &str = "\
    done completed complete finish finished closed checked ticked \
    erledigt erledigte erledigten abgeschlossen abgeschlossene abgeschlossenen abgehakt abgehakte fertig \
    terminé terminés terminées fait faites finies accomplies cochées \
    hecho hechos hechas completadas terminadas cerradas acabadas";
const DENIED: &str = "\
    not done | not yet done | not finished | not completed | not checked | to be done | be done | nicht erledigt | noch \
    nicht erledigt | nicht abgeschlossen | pas faites | pas terminées | no hechas | no terminadas | not closed";

/// What may begin what stands behind them.
const BEHIND: &str = "\
    for of in about on with from by has have had does do did assigned tagged mentioning concerning regarding due since \
    until before after and \
    für von vom in im aus mit zu zum zur über bei hat habe haben gibt stehen steht bleiben \
    pour de du des d à a ont dans sur avec reste restent y il \
    para del con en sobre tiene tengo tienen tenemos hay quedan queda";

/// What asks for what is left.
const WHAT: &str = "what whats which was qu que quoi what qué";
/// That something is left.
const LEFT: &str = "\
    left to do | left to be done | still to do | still to be done | remains to be done | remains to do | remaining to be \
    done | needs to be done | has to be done | is still open | noch zu tun | noch zu erledigen | ist zu erledigen | noch \
    offen | ist noch offen | reste à faire | reste t il à faire | queda por hacer | falta por hacer | hay que hacer";
/// What stands before somebody and behind, where their duties are asked for.
const DUTIES: &[(&str, &str)] = &[
    ("what does", "have to do"),
    ("what does", "need to do"),
    ("what do", "have to do"),
    ("what do", "need to do"),
    ("what must", "do"),
    ("was muss", "tun"),
    ("was muss", "machen"),
    ("was muss", "erledigen"),
    ("was müssen", "tun"),
    ("was müssen", "machen"),
    ("was müssen", "erledigen"),
    ("was hat", "zu tun"),
    ("was habe", "zu tun"),
    ("was haben", "zu tun"),
    ("que doit faire", ""),
    ("que dois", "faire"),
    ("what", "doit faire"),
    ("qu", "doit faire"),
    ("qué tiene que hacer", ""),
    ("que tiene que hacer", ""),
    ("qué debe hacer", ""),
    ("que debe hacer", ""),
];
const SAID_OF_WHOM: &str = "all also now alles jetzt encore todavía aún";
/// What may stand behind that something is to be done.
const AFTER_DOING: &str = "\
    for by in about on until before now today this next für von bis in im heute noch pour par avant para por en hoy \
    right still";
/// Words of those phrases.
const DOING: &str = "\
    do to be have need needs must has tun machen erledigen zu muss müssen faire doit dois hacer tiene que debe fait \
    remains falta por et and or und oder ou";
