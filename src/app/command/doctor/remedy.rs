//! What to do about a fault, by its code.

use crate::{config::Provider, model::Fault};

pub(super) fn remedy(fault: &Fault, provider: &Provider) -> String {
    let key = match (&provider.key_env, &provider.key_file) {
        (Some(variable), _) => format!("check the key in {variable}"),
        (None, Some(path)) => format!("check the key in `{}`", path.as_path().display()),
        (None, None) => "it wants a key: set `key_env` or `key_file`".to_owned(),
    };
    match fault.code.as_str() {
        "connect" => "start the server, or correct its address".into(),
        "dns" => "correct the host in its address, or check the network".into(),
        "tls" => {
            "check the address, and the certificates of this machine; an authority of your own is trusted \
             by `ca_file`"
                .into()
        }
        "headers_timeout" | "stall" | "total_timeout" => {
            "try again; if it is always that slow, raise the deadlines in `[model]`".into()
        }
        "unauthorized" => key,
        "forbidden" => format!("{key}, and what it may be used for"),
        "model_not_found" => {
            "choose one of the models that `oracle models` shows, or correct the address".into()
        }
        "rate_limited" | "overloaded" => "wait a little and try again".into(),
        "quota" => "check plan and credit of the account".into(),
        "bad_request" => "check `dialect` and the name of the model".into(),
        "cut" | "bad_stream" | "empty_reply" => {
            "check `dialect`; for servers that cannot stream, set `stream = \"never\"`".into()
        }
        _ => "try again later".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Preset;

    #[test]
    fn a_remedy_names_where_the_key_is_from() {
        let mut provider = Preset::named("openai").unwrap().provider();
        let told = |provider: &Provider, code: &str| remedy(&Fault::permanent(code, "x"), provider);
        assert_eq!(
            told(&provider, "unauthorized"),
            "check the key in OPENAI_API_KEY"
        );
        provider.key_env = None;
        let none = "it wants a key: set `key_env` or `key_file`";
        assert_eq!(told(&provider, "unauthorized"), none);
        assert_eq!(told(&provider, "new"), "try again later");
    }
}
