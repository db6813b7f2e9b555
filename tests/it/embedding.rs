//! Oracle in other people's programs: put together by the builder, below actors of a host's, and twice in one
//! process.

mod apart;
mod built;
mod ports;

fn done(text: &str) -> String {
    format!(
        "{text}\n<signal type=\"context_sufficient\"><sources_found>1</sources_found>\
         <confidence>0.9</confidence></signal>"
    )
}
