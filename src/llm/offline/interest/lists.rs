//! The words and phrases by which it is told where to look something up. Data; all entries are lower-case.

pub(super) const LAST: &str = "last latest zuletzt";

/// Who did something, and what may stand between that and what they did.
pub(super) const WHO: &str = "who wer qui quién quiénes quien quienes";
pub(super) const BESIDE: &str = "\
    actually all also did else even ever exactly first had has have initially it just last lately latest most originally \
    previously recently really s that was were hat haben hatte zuletzt zuerst ursprünglich a ont avait l le la les \
    récemment dernièrement initialement ha han había lo los las fue el que";

/// What stands before a noun of which "who" tells more: "the user who added an item".
pub(super) const ARTICLES: &str = "the a an every each la le une el";

/// What asks for a change that is told behind it.
pub(super) const ASKING: &str = "\
    whose | by whom | when was | when were | when did | when has | when have | why was | why \
    were | why did | how long ago | von wem | wann wurde | \
    wann wurden | wann hat | warum wurde | warum wurden | par qui | quand a | quand ont | pourquoi \
    a | por quién | cuándo se | por qué se";

/// What begins a clause that tells only the time or the cause.
pub(super) const SUBORDINATE: &str = "\
    after because before if once unless until when whenever while nachdem sobald bevor wenn während weil \
    après lorsque dès avant después cuando antes mientras";

/// What asks for commits by itself.
pub(super) const NAMING: &str = "\
    git log | git blame | git history | commit history | history of commits | commit log | last \
    commit | last commits | latest commit | latest commits | recent commit | recent commits | \
    newest commit | first commit | which commit | which commits | what commit | \
    welcher commit | welche commits | quel commit | quels commits | qué commit | qué commits | recent changes | \
    latest changes | last changes | changed recently | changed lately | changed last | letzter \
    commit | letzte commits | letzten commits | letzte änderungen | letzten änderungen | dernier \
    commit | derniers commits | derniers changements | último commit | últimos commits | últimos \
    cambios";

/// What begins with a change.
pub(super) const BEGUN: &str = "\
    added introduced created wrote written first invented hinzugefügt \
    eingeführt geschrieben schrieb angelegt ajouté introduit écrit créé añadió agregó introdujo escribió \
    creó añadido agregado introducido escrito creado";

pub(super) const CHANGED: &str = "\
    changed removed deleted renamed fixed broke touched modified moved reverted replaced \
    rewritten merged committed geändert änderte \
    entfernt entfernte gelöscht löschte umbenannt behoben modifié supprimé renommé corrigé cambió modificó \
    eliminó borró quitó renombró corrigió cambiado modificado eliminado borrado quitado renombrado \
    corregido";

/// The same behind "did".
pub(super) const TO_BEGIN: &str = "add introduce create write";
pub(super) const TO_CHANGE: &str =
    "change remove delete rename fix modify move revert replace merge";

/// What is done to what is no longer where it was.
pub(super) const GONE: &str = "\
    removed remove deleted delete dropped drop renamed rename moved move replaced replace entfernt entfernte gelöscht \
    löschte umbenannt verschoben ersetzt supprimé retiré renommé déplacé remplacé eliminó borró quitó renombró eliminado \
    borrado quitado renombrado movido reemplazado";

pub(super) const OF_HISTORY: &str = "\
    commit commits git log blame history last latest recent recently lately newest changes \
    author zuletzt änderungen cambios changements";

/// Which commits: says no more beside them, and asks for none by itself.
pub(super) const NEWEST: &str = "\
    letzte letzten letzter neueste neuesten jüngste jüngsten dernier derniers dernière dernières récent récents último \
    últimos última últimas reciente recientes";

/// What asks for what was done, and how that is said besides.
pub(super) const WHAT: &str = "\
    what which who list show give tell any anything did commits changes was welche welcher wer zeig zeige liste que \
    quoi quels quelles qui qu qué cuáles quién quiénes muestra";
pub(super) const HAPPENED: &str = "\
    happened new geschehen neu neues changé passé nouveau pasó hecho hizo nuevo";
/// What says so only beside a word of what is past: "what was done", but not "what is done".
pub(super) const DONE: &[(&str, &str)] = &[
    ("done made did", "was were has have had did"),
    ("passiert gemacht getan", "ist wurde wurden hat habe haben"),
    ("fait", "a ont été avons avez"),
];

/// What asks for all of something, whatever clause tells of which.
pub(super) const ORDERED: &str = "list show give tell any anything zeig zeige liste muestra";
/// What begins a clause about a thing, unless it stands behind what points to the change itself.
pub(super) const RELATIVE: &str = "that which who whose qui que";
pub(super) const POINTING: &str = "it is was ce est es lo";

/// What asks about the whole.
pub(super) const OVERVIEW: &str = "\
    overview | architecture of | folder structure | directory structure | file structure | folder layout | directory layout | \
    folder tree | directory tree | file tree | which files are in the project | which files are in the repo | which files are in the \
    repository | what files are in the project | what files are in the repo | what files are in the repository | list all files | \
    list the files of the project | ordnerstruktur | verzeichnisstruktur | projektstruktur | estructura del proyecto | structure du \
    projet | arborescence | project structure | repository structure | repo structure | \
    code structure | code layout | repository layout | repo layout | project layout | what is \
    this project | what is this repo | what is this repository | what is this code | what is \
    this codebase | what is this about | what is the project about | what s this project | what \
    s this repo | what does this project | what does this repo | what does this repository | \
    what does this code do | what does this codebase | what does this program do | what does \
    this library do | what does this tool do | what does this package do | how is this project | \
    how is this repo | how is this repository | how is the code organised | how is the code \
    organized | how is the code structured | how is the project organised | how is the project \
    organized | how is the project structured | how is the project laid out | how is the \
    repository organised | how is the repository organized | main modules | main components | \
    main parts | where do i start | where do i begin | where should i start | where should i \
    begin | where to start | where to begin | about this project | about this repo | about this \
    repository | about this codebase | explain this project | explain this repo | explain this \
    codebase | summarise this project | summarize this project | summarise this repo | summarize \
    this repo | describe this project | was ist das für ein projekt | worum geht es in diesem \
    projekt | was macht dieses projekt | überblick | wie ist das projekt aufgebaut | wie ist der \
    code aufgebaut | vue d ensemble | que fait ce projet | de quoi parle ce projet | structure \
    du projet | qué hace este proyecto | de qué trata este proyecto | qué es este proyecto | \
    estructura del proyecto";

/// Words that say the whole, and are no focus.
pub(super) const WHOLE: &str = "\
    overview architecture project projects repository repo codebase code structure structured \
    layout organised organized laid modules components parts main program library tool package \
    start begin explain describe summarise summarize projekt projekts überblick aufgebaut projet \
    proyecto estructura ensemble vue short brief quick";

/// What says, of the whole, that its folders are meant.
pub(super) const TREE: &str = "\
    folder folders directory directories file files tree list show ordnerstruktur verzeichnisstruktur projektstruktur arborescence";

/// What asks who uses something.
pub(super) const USERS: &str = "\
    who calls | what calls | who uses | what uses | which function calls | which functions call | which code \
    calls | which code uses | which files use | which file uses | callers of | callers | usages of | usage of | \
    uses of | users of | references to | call sites | who references | what references | who imports | what \
    imports | which files import | what depends on | wer ruft | was ruft | wer benutzt | wer verwendet | wer nutzt | \
    wer importiert | qui appelle | qui l appelle | qui le appelle | qui la appelle | qui les appelle | qui \
    utilise | qui l utilise | qui les utilise | qui importe | qui l importe | qui les importe | quién llama | \
    quién lo llama | quién la llama | quién los llama | quién las llama | quién usa | quién lo usa | quién la \
    usa | quién los usa | quién las usa | quién utiliza | quién lo utiliza | quién la utiliza | quién \
    importa | quién lo importa | quién la importa";

/// What asks for what happens, unless it asks for a number.
pub(super) const HOW: &str = "how why wie warum wieso weshalb comment pourquoi cómo";
pub(super) const MANY: &str = "many much viele";

/// Words of them that say no more.
pub(super) const TO_USE: &str = "\
    calls uses callers usages usage references imports depends ruft auf benutzt verwendet nutzt importiert \
    appelle utilise importe usa utiliza importa";

/// The same, in two words.
pub(super) const WHERE: &str = "where wo où dónde";
pub(super) const USED: &str = "\
    used called referenced imported instantiated invoked verwendet benutzt aufgerufen genutzt utilisé utilisée \
    appelé appelée usa utiliza llama";

/// What asks for what was written down.
pub(super) const NOTES: &str = "\
    my notes | our notes | the notes | these notes | in notes | notes on | notes about | notes say | notes from | note \
    on | note about | was noted | i noted | we noted | notizen | notiz | mes notes | nos notes | les notes | notes sur | \
    mis notas | nuestras notas | las notas | notas sobre | why do we | why did we | why don t we | why are we | \
    warum verwenden wir | warum benutzen wir | warum nutzen wir | warum haben wir | pourquoi utilisons | pourquoi avons | \
    por qué usamos | por qué tenemos";

/// The words of it that say no more.
pub(super) const RECORDED: &str = "note notes noted notiz notizen nota notas";

/// What is written down to be found again.
pub(super) const RECORDS: &str = "adr adrs rationale diary";

/// English words of these lists that may as well be names of types.
pub(super) const ENGLISH_NOUNS: &str = "\
    note notes adr rationale diary decision decisions meeting meetings overview commit history change \
    changes project repository package module modules component components structure library tool program \
    author log latest recent layout";

/// What was settled, and where.
pub(super) const SETTLED: &str = "\
    decision decisions decided meeting meetings agreed entscheidung entscheidungen entschieden \
    beschlossen besprechung décision décisions décidé réunion decisión decisiones decidió reunión";

/// What else only says that something was decided, where that is asked for.
pub(super) const CHOSEN: &str = "\
    choose chose chosen choice pick picked select selected adopt adopted wählen gewählt gewählte choisir choisi choisie elegir elegido \
    elegimos";
