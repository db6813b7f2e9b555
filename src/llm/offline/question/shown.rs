//! Questions to be shown a file or a folder as it is: "show me src/lib.rs", "which files are in src/tool?". Only if
//! nothing else is said. Pure.

use super::{super::lexicon::holds, files};

/// What is to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Shown {
    /// A file from its beginning.
    File(String),
    /// What files a folder has.
    Folder(String),
}

impl Shown {
    /// If that is all that is asked for.
    pub(super) fn asked(plain: &str) -> Option<Self> {
        let tokens: Vec<&str> = plain.split_whitespace().map(bare).collect();
        let tokens = tokens.into_iter().filter(|token| !token.is_empty());
        let tokens: Vec<&str> = tokens.collect();
        let lower: Vec<String> = tokens
            .iter()
            .map(|token| token.to_lowercase().replace('’', "'"))
            .collect();
        let begun = opening(&lower)?;
        let is_wanted = |at: &usize| !holds(BESIDE, &lower[*at]);
        let said: Vec<usize> = (begun..tokens.len()).filter(is_wanted).collect();
        let [at] = *said.as_slice() else {
            return None;
        };
        Self::at(tokens[at], is_said_as_folder(&lower, at))
    }

    /// Of another one, if nothing else is said: "and in src/tool?".
    pub(super) fn asked_too(plain: &str) -> Option<Self> {
        let behind = super::also(plain)?;
        Self::asked(&format!("show me {behind}")).or_else(|| Self::asked(&format!("ls {behind}")))
    }

    /// Where a map is asked for it: the folder, or the files of that name in all folders.
    pub(in super::super) fn place(&self) -> String {
        match self {
            Self::Folder(path) => path.clone(),
            Self::File(path) if path.contains('/') => format!("{{**/{path}}}"),
            Self::File(path) => format!("{{{path}}}"),
        }
    }

    fn at(token: &str, is_of_folder: bool) -> Option<Self> {
        let path = token.trim_start_matches("./").trim_end_matches('/');
        let is_part =
            |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@' | '+');
        if path.is_empty() || path.contains("..") || !path.chars().all(is_part) {
            return None;
        }
        let last = path.rsplit('/').next().unwrap_or(path);
        let is_deep = path.contains('/') && !last.contains('.');
        if is_of_folder || token.ends_with('/') || is_deep {
            return Some(Self::Folder(path.to_owned()));
        }
        let file = files::in_word(path).filter(|file| file.lines().is_none());
        file.map(|_| Self::File(path.to_owned()))
    }
}

/// Whether a word is said to be a folder: "files in src", "the tests folder"; and not "all markdown files".
fn is_said_as_folder(lower: &[String], at: usize) -> bool {
    let word = |at: usize| lower.get(at).map_or("", String::as_str);
    if holds(NO_FOLDER, word(at)) || !lower.iter().any(|word| holds(FOLDER, word)) {
        return false;
    }
    let mut before = (0..at).rev().map(word);
    let before = before.find(|word| !holds(ARTICLES, word));
    let is_in = before.is_some_and(|word| holds(IN, word) || holds(ONE_FOLDER, word));
    is_in || holds(ONE_FOLDER, word(at + 1))
}

/// Without what stands around a word, but with the slash that a folder may end with.
fn bare(token: &str) -> &str {
    let token = token.trim_start_matches(|c: char| !c.is_alphanumeric() && !"._@".contains(c));
    token.trim_end_matches(|c: char| !c.is_alphanumeric() && !"_/".contains(c))
}

/// How many words of a question only ask to be shown something.
fn opening(lower: &[String]) -> Option<usize> {
    let begins = |phrase: &&&str| {
        let mut words = phrase.split(' ').enumerate();
        words.all(|(at, wanted)| lower.get(at).is_some_and(|word| word == wanted))
    };
    let phrases = OPENINGS.iter().filter(begins);
    phrases.map(|phrase| phrase.split(' ').count()).max()
}

const OPENINGS: &[&str] = &[
    "show",
    "show me",
    "can you show me",
    "open",
    "cat",
    "ls",
    "list",
    "read",
    "view",
    "display",
    "print",
    "what is in",
    "what's in",
    "what is inside",
    "contents of",
    "what are the contents of",
    "which files are in",
    "which files are there in",
    "which files does",
    "what files are in",
    "what files are there in",
    "how many files are in",
    "how many files are there in",
    "zeig",
    "zeige",
    "zeig mir",
    "zeige mir",
    "öffne",
    "lies",
    "liste",
    "was ist in",
    "was steht in",
    "welche dateien sind in",
    "welche dateien liegen in",
    "welche dateien gibt es in",
    "wie viele dateien sind in",
    "montre",
    "montre-moi",
    "affiche",
    "ouvre",
    "liste",
    "qu'y a-t-il dans",
    "quels fichiers sont dans",
    "quels fichiers y a-t-il dans",
    "combien de fichiers y a-t-il dans",
    "muestra",
    "muéstrame",
    "abre",
    "lista",
    "qué hay en",
    "qué archivos hay en",
    "cuántos archivos hay en",
];

/// What says that a folder is meant.
const FOLDER: &str = "\
    files folder directory ls dateien ordner verzeichnis fichiers dossier répertoire archivos ficheros carpeta directorio";

/// One of them, beside its name.
const ONE_FOLDER: &str =
    "folder directory ls ordner verzeichnis dossier répertoire carpeta directorio";
/// What stands before it.
const IN: &str = "in of under inside below within von im aus unter dans de du sous en del";
const ARTICLES: &str = "the a our this dem den der das die le la les el los las l";
/// What is no name of a folder where it stands so.
const NO_FOLDER: &str = "\
    project repo repository codebase total all it this here structure layout tree hierarchy overview contents names sizes git \
    projekt gesamt struktur hier projet dépôt tout ici structure proyecto repositorio aquí estructura";

/// What says no more than that a file or a folder is meant, or all of it.
const BESIDE: &str = "\
    a the all file files folder directory content contents of in under inside below me please whole entire full have contain there are is \
    mir bitte die das den der dem datei dateien ordner verzeichnis inhalt von aus im ganze ganzen alle auf \
    le la les du de des moi fichier fichiers dossier répertoire contenu dans tout tous \
    el los las del archivo archivos fichero ficheros carpeta directorio contenido en todo todos";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders_are_shown_when_nothing_else_is_said() {
        for (question, want) in [
            ("show me src/lib.rs", "file src/lib.rs"),
            ("open README.md, please", "file README.md"),
            ("cat ./Cargo.toml", "file Cargo.toml"),
            ("what is in package.json?", "file package.json"),
            ("Zeig mir die Datei src/lib.rs", "file src/lib.rs"),
            ("list the files in src/journal", "folder src/journal"),
            ("which files are in src?", "folder src"),
            ("what files are there in the tests folder?", "folder tests"),
            ("what is in src/tool/history?", "folder src/tool/history"),
            ("ls src", "folder src"),
            ("show me `docs/`", "folder docs"),
            ("Welche Dateien liegen in src/tool?", "folder src/tool"),
            ("qué archivos hay en src?", "folder src"),
            ("show me src/lib.rs:12", ""),
            ("show me the journal", ""),
            ("what is in the queue?", ""),
            ("open the session in src/lib.rs", ""),
            ("show me how src/lib.rs begins", ""),
            ("list all commands", ""),
            ("which files are in ../secret?", ""),
            ("show me Session::decide", ""),
            ("show me the files", ""),
            ("show me the tests folder", "folder tests"),
            ("how many files are in the project?", ""),
            ("how many files are in total?", ""),
            ("quels fichiers sont dans le projet ?", ""),
            ("which files does oracle have?", ""),
            ("show me the folder structure", ""),
            ("show me the directory layout", ""),
            ("list all markdown files", ""),
            ("list the test files", ""),
            ("show me the hidden files", ""),
        ] {
            let shown = match Shown::asked(question) {
                Some(Shown::File(path)) => format!("file {path}"),
                Some(Shown::Folder(path)) => format!("folder {path}"),
                None => String::new(),
            };
            assert_eq!(shown, want, "{question}");
        }
    }
}
