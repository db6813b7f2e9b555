//! What servers refuse of their models' calls, found out with the first call and remembered.
//!
//! A lesson changes the form of a call, never its meaning: the same call is sent once more in the
//! form that the refusal asks for.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use super::Route;
use crate::{
    llm::dialect::Lessons,
    model::{Fault, FaultCode},
};

/// Models with lessons; more are learned anew.
const MOST: usize = 1024;

/// The lessons of each model.
#[derive(Debug, Default)]
pub(super) struct Learned(Mutex<HashMap<Arc<str>, Lessons>>);

impl Learned {
    pub(super) fn of(&self, model: &str) -> Lessons {
        self.0.lock().get(model).copied().unwrap_or_default()
    }

    /// Takes the lesson of a refusal. `false` if it has none that is new.
    pub(super) fn learn(&self, model: &Arc<str>, fault: &Fault, has_other: bool) -> bool {
        let mut all = self.0.lock();
        let before = all.get(model).copied().unwrap_or_default();
        let after = before.after(fault, has_other);
        if after != before {
            if all.len() >= MOST {
                all.clear();
            }
            all.insert(Arc::clone(model), after);
        }
        // A route that the server lacks as well is forgotten, which is no reason to ask again.
        after != before && (after.other_route || !before.other_route)
    }
}

impl Lessons {
    fn after(self, fault: &Fault, has_other: bool) -> Self {
        let says = |words: &str| fault.detail.contains(words);
        match fault.code {
            FaultCode::WrongRoute if has_other => Self {
                other_route: !self.other_route,
                ..self
            },
            FaultCode::BadRequest if says("ncrypted content is not supported") => Self {
                no_encrypted_reasoning: true,
                ..self
            },
            _ => self,
        }
    }

    pub(super) fn sentences(self, main: &Route) -> Vec<String> {
        let other = main.protocol().other().filter(|_| self.other_route);
        let other = other.map(|other| {
            format!(
                "its server takes these calls in the dialect `{other}`, not in `{}`: set `dialect = \
                 \"{other}\"` to save a request after each start",
                main.dialect
            )
        });
        other.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lessons_are_learned_once() {
        let learned = Learned::default();
        let model: Arc<str> = "m".into();
        let refused = |code: FaultCode, detail: &str| Fault::permanent(code, detail);
        let route = refused(FaultCode::WrongRoute, "use /v1/responses");
        let sealed = refused(
            FaultCode::BadRequest,
            "400: Encrypted content is not supported with this model.",
        );
        for (name, fault, has_other, again, other_route, plain) in [
            (
                "another refusal",
                refused(FaultCode::BadRequest, "no"),
                true,
                false,
                false,
                false,
            ),
            ("no other route", route.clone(), false, false, false, false),
            ("the other route", route.clone(), true, true, true, false),
            ("reasoning", sealed.clone(), true, true, true, true),
            ("the same again", sealed, true, false, true, true),
            ("neither route", route, true, false, false, true),
        ] {
            assert_eq!(learned.learn(&model, &fault, has_other), again, "{name}");
            let got = learned.of("m");
            assert_eq!(got.other_route, other_route, "{name}");
            assert_eq!(got.no_encrypted_reasoning, plain, "{name}");
            assert_eq!(learned.of("n"), Lessons::default());
        }
    }
}
