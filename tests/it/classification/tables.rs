//! Facts of the reference design that classification keeps: its rows and its
//! keywords. Never training data.

use oracle_agent::model::QueryType;

use QueryType::{Action, Code, Conversational, Documentation, Research};

/// Queries with their types, under the name of the reference test.
pub(super) const ROWS: &[(&str, &[(QueryType, &str)])] = &[
    (
        "code",
        &[
            (Code, "Where is the authentication function?"),
            (Code, "How does the login method work?"),
            (Code, "What does the validate_user function return?"),
            (Code, "Find the database connection class"),
            (Code, "Which file has the API endpoint for users?"),
            (Code, "What's the implementation of the cache service?"),
            (Code, "Show me the code for the auth middleware"),
            (Code, "Locate the error handling module"),
            (Code, "What parameters does get_user take?"),
            (Code, "How is the session variable initialized?"),
        ],
    ),
    (
        "documentation",
        &[
            (Documentation, "Why did we choose PostgreSQL?"),
            (Documentation, "What's the architecture decision for auth?"),
            (Documentation, "Show me the design spec for the API"),
            (Documentation, "What was discussed in the sprint meeting?"),
            (Documentation, "When did we agree to use TypeScript?"),
            (Documentation, "What's our convention for naming?"),
            (Documentation, "Show me the documentation for this feature"),
            (Documentation, "What's the roadmap for Q2?"),
            (Documentation, "What guidelines do we follow for testing?"),
        ],
    ),
    (
        "research",
        &[
            (Research, "What are the best practices for API design?"),
            (Research, "Compare React vs Vue for this project"),
            (Research, "What's the latest version of Python?"),
            (Research, "Should we use Redis or Memcached?"),
            (Research, "What alternatives to JWT exist?"),
            (Research, "Recommend a library for PDF parsing"),
            (Research, "What are the pros and cons of microservices?"),
            (Research, "How to implement OAuth2 properly?"),
            (Research, "What's trending in frontend development?"),
        ],
    ),
    (
        "action",
        &[
            (Action, "Create a new note about the meeting"),
            (Action, "Update the README with installation steps"),
            (Action, "Save this to the project docs"),
            (Action, "Write a summary of the discussion"),
            (Action, "Delete the old config file"),
            (Action, "Rename the test folder"),
            (Action, "Move this file to the archive"),
            (Action, "Generate a report of test results"),
            (Action, "Add a new entry to the changelog"),
        ],
    ),
    (
        "conversational",
        &[
            (Conversational, "Thanks!"),
            (Conversational, "Ok, got it"),
            (Conversational, "Yes"),
            (Conversational, "No"),
            (Conversational, "Great, that helps"),
            (Conversational, "Interesting"),
            (Conversational, "Perfect"),
            (Conversational, "Hmm"),
            (Conversational, "Understood"),
            (Conversational, "Cool"),
        ],
    ),
    (
        "edge cases",
        &[
            (Conversational, ""),
            (Conversational, "   "),
            (Conversational, "ok"),
            (Conversational, "xyzabc123"),
            (Code, "WHERE IS THE FUNCTION?"),
        ],
    ),
    (
        "context needs",
        &[
            (Code, "What function handles auth?"),
            (Conversational, "Thanks!"),
        ],
    ),
    (
        "composition of a code query",
        &[(Code, "How does the auth middleware work?")],
    ),
    (
        "classification and composition",
        &[
            (Code, "How does the auth middleware work?"),
            (Documentation, "What did we decide about caching?"),
            (Research, "What's the latest React 19 features?"),
            (Conversational, "Thanks, that helps!"),
        ],
    ),
];

#[rustfmt::skip]
pub(super) const KEYWORDS: [(QueryType, &[&str]); 5] = [
    (
        Code,
        &[
            "function", "method", "class", "variable", "module", "import", "package",
            "implement", "implementation", "code", "coding", "syntax", "error", "bug", "fix",
            "debug", "where is", "find the", "locate", "which file", "what file", "how does",
            "how do", "how is", "what does", "line", "lines", "return", "parameter", "argument",
            "type", "interface", "api", "endpoint", "route", "handler", "controller", "model",
            "service", "repository", "database", "query", "schema",
        ],
    ),
    (
        Documentation,
        &[
            "decision", "architecture", "design", "spec", "specification", "document",
            "documentation", "readme", "why did we", "why was", "what did we", "when did we",
            "history of", "plan", "planning", "roadmap", "milestone", "sprint", "process",
            "workflow", "convention", "standard", "guideline", "meeting", "discussion", "agreed",
            "consensus",
        ],
    ),
    (
        Research,
        &[
            "best practice", "best practices", "compare", "comparison", "vs", "versus",
            "alternative", "alternatives", "latest", "new", "recent", "update", "news", "trend",
            "trending", "recommend", "recommendation", "should we", "should i", "better",
            "worse", "pros and cons", "learn", "tutorial", "guide", "how to", "example",
            "examples", "library", "framework", "tool", "package", "npm", "pip", "crate",
        ],
    ),
    (
        Action,
        &[
            "create", "make", "generate", "new", "add", "update", "modify", "change", "edit",
            "rename", "move", "save", "write", "store", "persist", "commit", "push", "merge",
            "branch", "delete", "remove", "file", "folder", "directory",
        ],
    ),
    (
        Conversational,
        &[
            "thanks", "thank you", "great", "perfect", "awesome", "cool", "ok", "okay", "got it",
            "understood", "yes", "yeah", "yep", "sure", "right", "correct", "no", "nope", "not",
            "nevermind", "never mind", "what do you mean", "can you explain", "more details",
            "elaborate", "hmm", "huh", "interesting",
        ],
    ),
];
