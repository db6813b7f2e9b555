//! Orders: the verbs that begin one, what polite people say before it, and what shows that
//! something is to be done to a thing, in the four languages that searches know.
//!
//! Data and look-ups. All entries are lower-case.

use super::holds;

/// What orders are made of in a language.
struct Tongue {
    /// Verbs that order even where nothing shows an object.
    plain: &'static str,
    /// Verbs that are nouns too, or words of another language, or that people also search with: they
    /// order something only before an object.
    doubtful: &'static str,
    /// What stands before an object.
    objects: &'static str,
    /// Verbs that stand at the end of a polite order.
    last: &'static str,
}

/// English verbs are searched with too ("write timeout for the downloader"): in so few words they need an
/// object.
const SHORT: usize = 5;

/// What shows what becomes of an object that begins with no article: "add retries to the client".
const TO: &str = "to into from with";

const ENGLISH: Tongue = Tongue {
    plain: "\
        add append apply bump commit convert create delete disable drop edit enable execute extend generate \
        implement improve install make migrate modify optimise optimize refactor remember remove rename \
        reorganize replace restart revert rewrite save send simplify undo uninstall write",
    doubtful: "\
        build change copy deploy export extract fix format insert merge move note patch port publish \
        push release run schedule split store test update upgrade",
    objects: "\
        a all an any as both cargo commit each every everything for her his in into it its me my our please some that \
        the their them these this those to us your",
    last: "",
};

const OTHERS: &[Tongue] = &[
    Tongue {
        plain: "\
            lösche lösch entferne entfern füge ergänze schreibe schreib erstelle erstell erzeuge benenne ändere \
            ersetze ersetz verschiebe verschieb behebe beheb repariere reparier korrigiere korrigier verbessere \
            implementiere implementier installiere installier aktualisiere aktualisier generiere generier \
            speichere kopiere kopier formatiere formatier optimiere optimier vereinfache deaktiviere aktiviere \
            refaktorisiere aktualisieren",
        doubtful: "\
            lege leg führe führ baue bau teste starte mache mach merke merk stelle stell räume räum \
            veröffentliche verschicke sende setze setz",
        objects: "\
            der die das den dem ein eine einen einem einer alle alles jede jeden jedes mein meine meinen unser \
            unsere dein deine diese dieses diesen es ihn sie mir uns bitte beide neue",
        last: "\
            löschen löschst entfernen entfernst hinzufügen hinzufügst ergänzen schreiben schreibst erstellen \
            erstellst erzeugen anlegen anlegst umbenennen umbenennst ändern änderst ersetzen ersetzt \
            verschieben beheben behebst reparieren reparierst korrigieren korrigierst verbessern \
            implementieren implementierst installieren aktualisieren generieren speichern kopieren formatieren \
            optimieren vereinfachen deaktivieren aktivieren refaktorisieren ausführen starten bauen testen \
            veröffentlichen einbauen ausbauen",
    },
    Tongue {
        plain: "\
            supprime supprimez efface effacez ajoute ajoutez crée créez écris écrivez corrigez répare réparez \
            renomme renommez déplace déplacez remplace remplacez implémente implémentez exécute exécutez génère \
            générez enregistre enregistrez améliore améliorez simplifiez annulez déploie déployez envoie \
            envoyez construis construisez mets mettez refactorise refactorisez désactive désactivez \
            fusionnez publiez copiez lancez testez modifiez changez installez optimisez formatez activez \
            enlève enlevez retirez",
        doubtful: "\
            corrige modifie change installe optimise simplifie annule publie copie lance teste formate \
            active fusionne compile sauvegarde retire \
            supprimer effacer ajouter créer écrire corriger réparer renommer déplacer remplacer implémenter \
            exécuter générer enregistrer améliorer simplifier annuler déployer envoyer construire mettre \
            refactoriser désactiver fusionner publier copier lancer tester modifier changer installer \
            optimiser formater activer enlever retirer \
            supprimes ajoutes crées écrives corriges renommes déplaces remplaces modifies",
        objects: "\
            le la les l un une des du d mon ma mes notre nos ton ta tes ce cet cette ces tout toute tous \
            toutes moi nous chaque à",
        last: "",
    },
    Tongue {
        plain: "\
            elimina elimine elimínalo elimínala borra borre bórralo bórrala añade añada añádelo agrega agregue \
            agrégalo escribe escriba escríbelo arregla arregle arréglalo cambia modifica renombra mueve mueva \
            reemplaza sustituye implementa instala ejecuta ejecute actualiza actualice refactoriza mejora \
            mejore optimiza simplifica formatea desactiva deshaz despliega envía construye",
        doubtful: "\
            crea cree genera guarda copia prueba activa publica fusiona lanza compila corrige corrija quita \
            eliminar borrar añadir agregar crear escribir corregir arreglar cambiar modificar renombrar mover \
            reemplazar sustituir implementar instalar ejecutar actualizar generar guardar copiar probar \
            refactorizar mejorar optimizar simplificar formatear desactivar activar deshacer desplegar enviar \
            construir quitar \
            elimines borres añadas agregues crees escribas corrijas arregles cambies modifiques renombres \
            muevas actualices",
        objects: "\
            el la los las lo un una unos unas al mi mis tu tus nuestro nuestra este esta estos estas ese esa esos \
            esas todo toda todos todas cada me a",
        last: "",
    },
];

/// What asks politely for a deed; longer ones first of those that begin alike.
const POLITE: &[&str] = &[
    "i would like you to",
    "i'd like you to",
    "i want you to",
    "i need you to",
    "would you",
    "could you",
    "can you",
    "will you",
    "go ahead and",
    "let us",
    "let's",
    "lets",
    "please",
    "ich möchte, dass du",
    "ich möchte dass du",
    "ich will, dass du",
    "ich will dass du",
    "kannst du",
    "könntest du",
    "würdest du",
    "könnten sie",
    "können sie",
    "würden sie",
    "bitte",
    "est-ce que tu peux",
    "est-ce que tu pourrais",
    "est-ce que vous pouvez",
    "est-ce que vous pourriez",
    "peux-tu",
    "peux tu",
    "pourrais-tu",
    "pourrais tu",
    "pouvez-vous",
    "pouvez vous",
    "pourriez-vous",
    "pourriez vous",
    "tu peux",
    "tu pourrais",
    "vous pouvez",
    "vous pourriez",
    "je veux que tu",
    "je voudrais que tu",
    "j'aimerais que tu",
    "s'il te plaît",
    "s'il vous plaît",
    "stp",
    "svp",
    "veuillez",
    "merci de",
    "por favor",
    "me puedes",
    "me podrías",
    "puedes",
    "podrías",
    "puede usted",
    "podría usted",
    "quiero que",
    "quisiera que",
    "me gustaría que",
    "necesito que",
];

/// What may stand before an order or a question, and makes neither of it.
const BEFORE: &[&str] = &[
    "now",
    "then",
    "also",
    "and",
    "ok",
    "okay",
    "hi",
    "hello",
    "hey",
    "oracle",
    "mal",
    "doch",
    "nun",
    "jetzt",
    "und",
    "dann",
    "auch",
    "noch",
    "maintenant",
    "et",
    "puis",
    "ensuite",
    "alors",
    "ahora",
    "y",
    "luego",
    "entonces",
];

/// What makes a question of a text that ends with a verb.
const ASKING: &str = "wie wo was wer wann warum welche welcher welches ob weshalb wieso wozu";

/// What verbs leave at the end of German orders: "füge … hinzu".
const LEFT: &str = "ab an auf aus ein hinzu um weg zu";

/// Whether the word is no more than a part of an order's verb.
pub(in super::super) fn is_left_of_deed(word: &str) -> bool {
    holds(LEFT, word)
}

/// The verb of an order ("rename it") or a polite one ("could you rename it?"); none for a question
/// about one ("how do I rename it?"), or a name or a phrase that begins so (`write_all`, "write
/// timeout"). Lower-case.
pub(in super::super) fn deed_in(lower: &str) -> Option<&str> {
    let (order, polite) = without_politeness(lower);
    let words: Vec<&str> = order.split_whitespace().collect();
    let first = bare(words.first()?);
    if (!polite && order.trim_end().ends_with('?')) || asks_for_a_tour(&words) {
        return None;
    }
    let has_object = |tongue: &Tongue| words.get(1).is_some_and(|word| begins_object(tongue, word));
    let is_alone = words.len() == 1;
    let in_english = (holds(ENGLISH.plain, first)
        && (polite || words.len() > SHORT || is_done_to(&words) || has_object(&ENGLISH)))
        || (holds(ENGLISH.doubtful, first) && (has_object(&ENGLISH) || (polite && is_alone)));
    if in_english {
        return Some(first);
    }
    // "Supprime-le": the object hangs on the verb.
    let (verb, hangs) = first
        .split_once('-')
        .map_or((first, false), |(verb, _)| (verb, true));
    let begins = |tongue: &&Tongue| {
        holds(tongue.plain, verb)
            || (holds(tongue.doubtful, verb) && (polite || hangs || has_object(tongue)))
    };
    if OTHERS.iter().any(|tongue| begins(&tongue)) {
        return Some(verb);
    }
    let (last, before) = words.split_last()?;
    let last = bare(last);
    // A verb behind a comma is that of another clause: "zeigen, an der wir Cookies löschen".
    let ends = polite
        && !before.iter().any(|word| word.ends_with(','))
        && OTHERS.iter().any(|tongue| holds(tongue.last, last))
        && !words.iter().any(|word| holds(ASKING, bare(word)));
    ends.then_some(last)
}

/// "Run me through how it ends" asks for no deed.
fn asks_for_a_tour(words: &[&str]) -> bool {
    let word = |at: usize| words.get(at).map_or("", |word| bare(word));
    holds("me us", word(1)) && word(2) == "through"
}

/// Whether an English verb at the beginning is done to what follows: to a number of things, to many
/// ("write tests for the parser"), or with something that is named too.
fn is_done_to(words: &[&str]) -> bool {
    let is_many = |word: &&str| word.ends_with('s') && !word.ends_with("ss");
    if words.get(1).is_some_and(is_many) && words.get(2).is_some_and(|word| holds("for in", word)) {
        return true;
    }
    let is_number = |word: &&str| bare(word).starts_with(|c: char| c.is_ascii_digit());
    let mut behind = words.iter().skip(2);
    words.get(1).is_some_and(is_number) || behind.any(|word| holds(TO, bare(word)))
}

/// A word without the marks around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric() && c != '_')
}

/// Whether what stands behind a deed is what it is done to: an article, a file, a name or a quotation.
fn begins_object(tongue: &Tongue, word: &str) -> bool {
    let plain = bare(word);
    let elided = plain.split('\'').next().unwrap_or(plain);
    word.starts_with(['`', '"', '“', '„', '«'])
        || plain.contains(['_', '/', '.'])
        || holds(tongue.objects, plain)
        || (elided.len() == 1 && elided != plain && holds(tongue.objects, elided))
}

/// The text without what people say before an order, and whether they were polite. Lower-case.
pub(in super::super) fn without_politeness(text: &str) -> (&str, bool) {
    let mut rest = text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '¿' | '¡'));
    let mut polite = false;
    loop {
        let behind = |list: &[&str]| list.iter().find_map(|words| behind_word(rest, words));
        if let Some(behind) = behind(POLITE) {
            (rest, polite) = (behind, true);
        } else if let Some(behind) = behind(BEFORE) {
            rest = behind;
        } else {
            return (rest, polite);
        }
    }
}

fn behind_word<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(words)?;
    let ends = rest.starts_with(|c: char| c.is_whitespace() || matches!(c, ',' | '!' | ':'));
    ends.then(|| rest.trim_start_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '`' | '_')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_told_from_names_searches_and_questions() {
        for (text, verb) in [
            ("rename session to conversation", Some("rename")),
            ("delete the file", Some("delete")),
            ("delete src/a.rs", Some("delete")),
            ("rename load_object", Some("rename")),
            ("remove `evict`", Some("remove")),
            ("please delete cookies", Some("delete")),
            ("could you fix the parser?", Some("fix")),
            ("add retries to the client", Some("add")),
            ("and write a test", Some("write")),
            ("delete the file?", None),
            ("and delete cookies middleware?", None),
            ("write_all", None),
            ("create_dir_all", None),
            ("drop_join_handle_slow", None),
            ("send_catch_log deferred", None),
            ("delete.py", None),
            ("commit the translations and push", Some("commit")),
            ("commit please", Some("commit")),
            ("revert commit 4f2c9aa", Some("revert")),
            ("save as draft", Some("save")),
            ("revert 4f2c9aa", Some("revert")),
            ("replace json with toml", Some("replace")),
            ("implement retries in the http client", Some("implement")),
            ("write timeout", None),
            ("write timeout for the downloader", None),
            ("commit history of the scheduler", None),
            ("save settings on exit", None),
            ("please save settings on exit", Some("save")),
            ("write tests for the parser", Some("write")),
            ("delete cookies middleware", None),
            ("test coverage", None),
            ("run me through how it ends", None),
            ("run the tests", Some("run")),
            ("lösche die datei news", Some("lösche")),
            ("lösche news", Some("lösche")),
            ("schreibe einen test für den scheduler", Some("schreibe")),
            (
                "benenne die funktion load_object in load um",
                Some("benenne"),
            ),
            ("kannst du die datei news löschen?", Some("löschen")),
            ("bitte cookies löschen", Some("löschen")),
            ("ich möchte, dass du den cache entfernst", Some("entfernst")),
            ("kannst du mir sagen, wie wir cookies löschen?", None),
            (
                "kannst du die stelle zeigen, an der wir cookies löschen?",
                None,
            ),
            ("cookies löschen", None),
            ("wie benenne ich die funktion um?", None),
            ("teste den parser", Some("teste")),
            ("teste parser", None),
            ("ajoute un test pour le scheduler", Some("ajoute")),
            ("corrige le bug dans le parser", Some("corrige")),
            ("supprime-le", Some("supprime")),
            ("corrige l'erreur", Some("corrige")),
            ("peux-tu supprimer le fichier ?", Some("supprimer")),
            ("s'il te plaît, renomme load", Some("renomme")),
            ("ajouter middleware", None),
            ("active connections of the pool are counted", None),
            ("elimina el archivo news", Some("elimina")),
            ("¿puedes borrar el archivo?", Some("borrar")),
            ("por favor, crea una prueba", Some("crea")),
            ("¿elimina duplicados?", None),
            ("quiero que añadas una prueba", Some("añadas")),
            ("prueba unitaria", None),
            ("", None),
        ] {
            assert_eq!(deed_in(text), verb, "{text}");
        }
    }
}
