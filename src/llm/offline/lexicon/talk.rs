//! Small talk: phrases of it, and what may stand beside them.

use super::{super::words::words, holds};

/// Most words of small talk.
const LONGEST: usize = 16;

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
        "who are you | what are you | what can you do | what do you do | can you help me | help me | \
         help | wer bist du | was kannst du | qui es tu | qui êtes vous | quién eres",
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
         klar | d accord | de acuerdo | vale",
    ),
];

/// Words that may stand beside small talk without making it a question.
const FILLER: &str = "\
    a again all also am and any are as but day did dear everyone for friend friends good great guys \
    have helped helpful helps i indeed is it later like liked lot lots love loved m man mate me much \
    my oh once oracle please quick re really s so such that the then there this to today too truly u \
    ve very was well were with you your \
    aber alles bitte das deine dir die du es für geholfen gut hat hilfe ich ihnen ihre ist prima schön \
    sehr super toll und war \
    aide aujourd beaucoup bien c ce cette est et hui infiniment l pour réponse ta toi ton tout toute \
    très tu un une vous votre \
    amigo ayuda con de es esta ha la mil muchas muchísimas mucho muy por que respuesta su sido todo tu \
    usted";

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
