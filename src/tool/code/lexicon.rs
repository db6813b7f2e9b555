//! Stop words in four languages; English synonyms and German, French and Spanish translations of
//! programming terms.

use std::{collections::HashMap, sync::LazyLock};

use rust_stemmers::{Algorithm, Stemmer};

use super::words::stem;

static ENTRIES: &str = include_str!("lexicon.txt");

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::tool) enum NaturalLanguage {
    English,
    German,
    French,
    Spanish,
}

use NaturalLanguage::{English, French, German, Spanish};

impl NaturalLanguage {
    pub(in crate::tool) fn of(words: &[String]) -> Self {
        let count = |language: Self| words.iter().filter(|word| language.is_common(word)).count();
        let mut best = (English, count(English));
        for language in [German, French, Spanish] {
            let here = count(language);
            // One word may well be a name or English too.
            if here > best.1.max(count(English) + 1) {
                best = (language, here);
            }
        }
        best.0
    }

    pub(in crate::tool) fn is_common(self, word: &str) -> bool {
        let list = match self {
            English => ENGLISH,
            German => GERMAN,
            French => FRENCH,
            Spanish => SPANISH,
        };
        has(list, word)
    }

    fn stem(self, word: &str) -> String {
        let algorithm = match self {
            English => return stem(word),
            German => Algorithm::German,
            French => Algorithm::French,
            Spanish => Algorithm::Spanish,
        };
        Stemmer::create(algorithm).stem(word).into_owned()
    }
}

/// Whether a word is in most questions about code, such as `implemented`.
pub(in crate::tool) fn is_weak(word: &str) -> bool {
    has(WEAK, word)
}

fn has(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|entry| entry == word)
}

/// English stems for each word: synonyms or translations. Words are stems; foreign ones are also
/// there as they are spelt, since `Fehler` and `fehlen` share a stem.
static LEXICON: LazyLock<HashMap<(NaturalLanguage, String), Vec<String>>> = LazyLock::new(|| {
    let mut lexicon = HashMap::new();
    let mut enter = |language, word: &str, meaning: &String| {
        let known: &mut Vec<String> = lexicon.entry((language, word.to_owned())).or_default();
        if !known.contains(meaning) {
            known.push(meaning.clone());
        }
    };
    for line in ENTRIES.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = line.split('|').map(str::split_whitespace);
        let english: Vec<String> = columns.next().into_iter().flatten().map(stem).collect();
        for meaning in &english {
            for word in english.iter().filter(|word| *word != meaning) {
                enter(English, word, meaning);
            }
        }
        for (language, words) in [German, French, Spanish].into_iter().zip(columns) {
            for word in words.map(str::to_lowercase) {
                for meaning in &english {
                    enter(language, &language.stem(&word), meaning);
                    enter(language, &word, meaning);
                }
            }
        }
    }
    lexicon
});

/// English stems with the meaning of a lower-case word: its translations or, of English, synonyms.
pub(in crate::tool) fn meanings(language: NaturalLanguage, word: &str) -> &'static [String] {
    let known = |word: String| LEXICON.get(&(language, word));
    let found = known(word.to_owned()).or_else(|| known(language.stem(word)));
    found.map_or(&[], Vec::as_slice)
}

const ENGLISH: &str = "\
    a about actually after all also always am an and any anybody are aren around as at be because been before \
    being between both but by can cannot could couldn currently d did didn do does doesn doing don done during \
    each either else et etc ever every everything exactly few find for from get gets give gives go goes got had \
    has hasn have having he hello help her here hey hi his how however i if in into is isn it its itself just know \
    last least less let like ll locate look m made many may me mean means might mine more most much must my need \
    needs no not nothing now of off ok on once one only onto or other our out over own per place please quite re \
    really rather s said same say says see shall she should show since so some somebody someone something \
    somewhere still such t tell than thank thanks that the their them then there these they thing things this \
    those though through to too under until up upon us use used uses using ve very via want wants was wasn way we \
    well were what when where whether which while who whole whom whose why will with within without won would \
    wouldn yes yet you your wheres hows whats";
const GERMAN: &str = "\
    aber alle allem allen aller alles als am an andere ans auch auf aufs aus ausser außer bei beide beiden beim \
    bin bis bisher bleibt blieb bloß da dabei dafuer dafür daher damals damit danach dann daran darauf daraus \
    darf darfst darin darum das dass davon dazu dein deine deinem deinen deiner dem den denen denn der deren des \
    dessen dich die dies diese diesem diesen dieser dieses doch dort drin durch eben ein eine einem einen einer \
    eines einige einmal er erst erste ersten erster es etwa etwas euch euer eure falls finde findet fuer fälle \
    für fürs ganz ganze ganzen gar geben gegen gehe gehen geht genau gerade gern gerne gesagt gibt gibts ging \
    gut habe haben habt hat hatte hatten hier hin hinter hätte ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im \
    in ins ist ja jede jedem jeden jeder jedes jedoch jemals jemand jene jener jenes jetzt kann kannst kein \
    keine keinem keinen keiner keines klappt kommen kommt konnte könnt laesst lass lasse lassen letzte liegen \
    liegt lässt läßt mache machen machst macht man manche mehr mein meine meinem meinen meiner meines meist mich \
    mir mit muss musst musste muß mögen nach neben nehmen nicht nichts nie nimmt noch nun nur nutze ob obwohl \
    oder oft ohne pro schon sehr sein seine selber selbst sich sie sind so sobald sodass sogar solch solche soll \
    sollen sollte somit sonst soviel sowie sowohl stehen steht stelle trotz ueber um ums und uns unser unsere \
    unter viel viele vielen vom von vor waere wann war warum was wegen weil weiss weiter weiß welche wem wen \
    wenig wenige wenn wer werd werde werden wessen wie wieder wieso willst wir wird wirst wo wobei wofuer wofür \
    woher wohin womit wonach woran worauf woraus worin worum wovon wovor wozu wuerde wurd wurde wurden wäre \
    wären würde zu zudem zuerst zum zur zwar zweck zwei über \
    welchen welcher welches weshalb funktioniert";
const FRENCH: &str = "\
    a afin ai aient ainsi ait aller allons alors apres assez au aucun aucune auquel aura aurait aussi autre \
    autres aux avais avait avec avez avoir avons ayant bien bon c ce ceci cela celle celles celui ces cet cette \
    ceux chacun chaque chez comme d dans de dedans des deux devant devoir dois doit donc dont du duquel dès elle \
    elles en encore enfin est et etait ete etes eu eut eux existe facon faire fais fait faites fasse faut façon \
    fera fois fut grace grâce ici il ils j jamais je jusqu jusque l la le lequel les leur leurs lors lorsqu lui \
    là m ma mais marche mes mieux moi mon n ne ni non nos notre nous nôtre on ont ou ouais oui où par parce \
    parmi partie pas peu peut peux plus pour pourra prend pris près puis qu quand que quel quelle quelqu quels \
    qui quoi rien s sa sait savoir se selon sera serait seront sert ses si sien sinon situe situé soi soient \
    soit sommes son sont sorte sous suis sur t ta tant te tel telle telles tels tenir tes tient toi ton tous \
    tout toute toutes tres trop trouve très tu un une unes va venir vers veut veux vient voici voilà voir voire \
    vos votre voulu vous y à étais était étant été êtes être \
    comment pourquoi laquelle quelles";
const SPANISH: &str = "\
    a acerca ahora ahí al algo algun alguna alguno algún allí ambas ambos aquel aquí asi así aun aunque aún bajo \
    bien cada casi caso casos cierta cierto como con cosa cosas cual cuales cuando cuanta cuanto cuya cuyo cuál \
    cómo da dado dar de debe deben debido debo debía decir del dentro desde dicha dicho dio donde dos dónde e el \
    ella ellas ellos en entre era eran eres es esa esas ese eso esos esta estaba estar estas este esto estos \
    estoy está están existe forma fue fueron ha haber habia habrá había hace hacer haga hagan hago han hasta hay \
    haz hecho hizo hola jamás justo la lado las le les lo los luego me mejor menos mi mis mitad mucho muy más \
    mía mío nada nadie ni ningun no nos nunca o ocurre os otra otras otro otros para parece parte pasa pero poco \
    poder podria pone ponen poner por porque pueda puedan puede pueden puedes puedo pues puesto que quien quiere \
    quiero quién qué sabe saber salvo se sea segun según ser seria será sería si sido siendo sin sino sirve \
    sobre sois solo somos son soy su suele suelen sus sí tal tales tanto te tener tenga tengan tengo tenía tiene \
    tienen toda todas todo todos tras tu tus tuvo un una unas uno unos usted va vamos veces viene vienen volver \
    vuelve y ya yo él éste \
    porqué cuándo cuántos cuáles funciona";
const WEAK: &str = "\
    add added already api apply again away applied behave behavior behaviour call called calls case cause caused \
    causes change changed check checked checks class classes code codebase come comes compare contain contains \
    correct cover covers create created decide decides declared default define defined defines definition describe \
    described detail details difference different directory documentation documented entry exist exists explain \
    fail fails feature field fields file files first fix folder function functions handle handled handles happen \
    happening happens implement implementation implemented implements inside keep keeps kept kind kinds line lines \
    lives located logic main make makes making meaning method methods module modules name named names new next \
    number option options part parts place places point possible print printed prints program project properly \
    purpose put raise raised raises reason repo repository responsible return returns role run runs section set \
    sets setting settings sort source start starts step steps stuff struct support supported supports summarise \
    summarize summary switch take taken takes throw thrown time turn turned turns two three four five six seven \
    eight nine ten type types understand value values variable versus work working works write written wrong";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_language_follows_from_function_words() {
        for (question, language) in [
            ("where is the parser", NaturalLanguage::English),
            ("wo wird der parser aufgerufen", NaturalLanguage::German),
            ("où est le parser", NaturalLanguage::French),
            ("dónde está el parser", NaturalLanguage::Spanish),
            ("parser", NaturalLanguage::English),
            ("workers die early", NaturalLanguage::English),
            ("des cipher", NaturalLanguage::English),
            ("comment parser", NaturalLanguage::English),
            ("os signals", NaturalLanguage::English),
            ("mit license header", NaturalLanguage::English),
            ("an end when workers die", NaturalLanguage::English),
            ("warum retry", NaturalLanguage::English),
            ("warum hat er retry", NaturalLanguage::German),
            ("fehler der die sitzung beendet", NaturalLanguage::German),
            (
                "übergabe an die sitzung der anfrage",
                NaturalLanguage::German,
            ),
        ] {
            let words: Vec<String> = question.split(' ').map(str::to_owned).collect();
            assert_eq!(NaturalLanguage::of(&words), language, "{question}");
        }
    }
}
