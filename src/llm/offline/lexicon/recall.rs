//! What is said about the conversation itself, which no file answers: phrases of it, and what may stand
//! beside them.

use super::{super::words::words, holds};

/// What of the conversation is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Recall {
    /// The question before this one.
    Question,
    /// The first one.
    First,
    /// All that was asked.
    Everything,
    /// The last answer once more.
    Again,
    /// Whether the last answer is right.
    Doubt,
    /// The last answer in other words.
    Otherwise,
}

/// Phrases, without marks.
const RECALL: &[(Recall, &str)] = &[
    (
        Recall::Everything,
        "summarise our conversation | summarize our conversation | summarise this conversation | \
         summarize this conversation | summarise the conversation | summarize the conversation | sum up our \
         conversation | sum up this conversation | summary of our conversation | summary of this \
         conversation | recap our conversation | recap this conversation | summarise our chat | summarize \
         our chat | summarise this chat | summarize this chat | summarise our discussion | summarize our \
         discussion | recap | what have we talked about | what did we talk about | what have we discussed | \
         what did we discuss | what have i asked | what questions have i asked | what questions did i ask | \
         list my questions | show my questions | fass unser gespräch zusammen | fasse unser gespräch \
         zusammen | worüber haben wir gesprochen | was habe ich alles gefragt | résume notre conversation | \
         résume notre discussion | résumé de notre conversation | de quoi avons nous parlé | de quoi on a \
         parlé | resume nuestra conversación | resumen de nuestra conversación | de qué hemos hablado | de \
         qué hablamos",
    ),
    (
        Recall::Question,
        "what was my last question | what was my previous question | what was my question | what is my last \
         question | what did i ask | what did i just ask | what did i ask you | what was i asking | remind me \
         what i asked | repeat my question | repeat my last question | was war meine letzte frage | was war \
         meine frage | was habe ich gefragt | was habe ich zuletzt gefragt | was habe ich vorher gefragt | \
         wiederhole meine frage | quelle était ma dernière question | quelle était ma question | qu ai je \
         demandé | qu est ce que j ai demandé | répète ma question | cuál fue mi última pregunta | cuál era mi \
         última pregunta | cuál fue mi pregunta | qué pregunté | qué te pregunté | qué he preguntado | repite \
         mi pregunta",
    ),
    (
        Recall::First,
        "what was my first question | what was the first question | what is my first question | my first question | \
         what did i ask first | what did i ask at first | what did i first ask | what did i ask you first | repeat my \
         first question | was war meine erste frage | was war die erste frage | was habe ich zuerst gefragt | was habe \
         ich als erstes gefragt | quelle était ma première question | quelle était la première question | qu ai je \
         demandé en premier | cuál fue mi primera pregunta | cuál era mi primera pregunta | qué pregunté primero",
    ),
    (
        Recall::Doubt,
        "are you sure | are you certain | are you really sure | how sure are you | how certain are you | is that right | \
         is that correct | is that true | is this right | is this correct | is that all | can i trust that | can i trust \
         this | bist du sicher | bist du dir sicher | sind sie sicher | wie sicher bist du | stimmt das | ist das richtig \
         | ist das sicher | tu es sûr | tu es sûre | es tu sûr | es tu sûre | êtes vous sûr | vous êtes sûr | c est sûr | \
         est ce correct | c est correct | c est vrai | estás seguro | estás segura | está seguro | es correcto | es \
         verdad | es cierto",
    ),
    (
        Recall::Again,
        "repeat that | repeat it | repeat this | repeat your answer | repeat your last answer | repeat the \
         answer | repeat the last answer | say that again | say it again | once more | again please | please \
         again | one more time | wiederhole das | wiederhole die antwort | wiederhole deine antwort | sag das \
         noch einmal | sag das nochmal | noch einmal | noch mal | nochmal | répète | répète ça | répète ta \
         réponse | répétez | encore une fois | redis le | repite eso | repítelo | repite la respuesta | repite \
         tu respuesta | otra vez | una vez más",
    ),
    (
        Recall::Otherwise,
        "shorter | make it shorter | make that shorter | a shorter answer | too long | that was too long | \
         that is too long | that s too long | tl dr | tldr | more briefly | be brief | keep it short | \
         shorten that | shorten it | shorten your answer | simpler | explain it simply | explain that simply | \
         in simple words | in simpler words | in simple terms | in other words | rephrase that | rephrase it | \
         summarise that | summarize that | summarise your answer | summarize your answer | kürzer | fass dich \
         kurz | fass das zusammen | fasse das zusammen | das war zu lang | zu lang | einfacher | in anderen \
         worten | plus court | plus simple | plus simplement | trop long | en bref | résume ça | en d autres \
         mots | más corto | más breve | más simple | demasiado largo | en otras palabras | resume eso",
    ),
];

/// Words that may stand beside them.
const FILLER: &str = "\
    a about again and answer before can conversation could did earlier explain far i in just me now ok please \
    previously say so that the this to us was will with would you \
    bitte das du es kannst mir noch sag und vorhin zuvor antwort erkläre \
    avant ça de dis et le moi peux plaît réponse s stp te tout l heure il tu vous \
    antes dilo eso favor lo me por puedes y respuesta";

/// What of the conversation a text asks for. Lower-case.
pub(in super::super) fn recall_in(lower: &str) -> Option<Recall> {
    let said: Vec<&str> = words(lower).filter(|word| !word.is_empty()).collect();
    let said = format!(" {} ", said.join(" "));
    RECALL.iter().find_map(|(recall, phrases)| {
        let mut phrases = phrases.split(" | ").map(|phrase| format!(" {phrase} "));
        let is_all = |phrase: &String| {
            let rest = said.replacen(phrase.as_str(), " ", 1);
            rest != said && rest.split_whitespace().all(|word| holds(FILLER, word))
        };
        phrases.any(|phrase| is_all(&phrase)).then_some(*recall)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_about_the_conversation_is_told_from_what_is_about_files() {
        for (text, recall) in [
            ("what was my last question?", Some(Recall::Question)),
            ("what did i ask before?", Some(Recall::Question)),
            ("was war meine letzte frage?", Some(Recall::Question)),
            ("qu'ai-je demandé ?", Some(Recall::Question)),
            ("¿cuál fue mi última pregunta?", Some(Recall::Question)),
            ("summarise our conversation", Some(Recall::Everything)),
            (
                "can you summarize this conversation so far?",
                Some(Recall::Everything),
            ),
            ("what have i asked so far?", Some(Recall::Everything)),
            ("what was my first question?", Some(Recall::First)),
            ("und was war meine erste frage?", Some(Recall::First)),
            ("what was the first commit?", None),
            ("are you sure?", Some(Recall::Doubt)),
            ("are you sure about that?", Some(Recall::Doubt)),
            ("bist du dir sicher?", Some(Recall::Doubt)),
            ("tu es sûr ?", Some(Recall::Doubt)),
            ("¿estás seguro?", Some(Recall::Doubt)),
            ("is that correct for retries?", None),
            ("repeat that", Some(Recall::Again)),
            ("could you repeat that please?", Some(Recall::Again)),
            ("noch einmal bitte", Some(Recall::Again)),
            ("shorter please", Some(Recall::Otherwise)),
            ("plus court, s'il te plaît", Some(Recall::Otherwise)),
            ("shorter timeouts", None),
            ("what did i ask the scheduler to do?", None),
            ("what did we discuss about sqlite?", None),
            ("repeat that request after a timeout", None),
            ("where are questions stored?", None),
            ("", None),
        ] {
            assert_eq!(recall_in(text), recall, "{text}");
        }
    }
}
