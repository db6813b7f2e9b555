//! Letters without their accents, so that words that are typed with and without them meet.

/// Lower case without accents.
pub(crate) fn fold(c: char, into: &mut String) {
    for c in c.to_lowercase() {
        match c {
            c if is_mark(c) => {}
            'à'..='å' => into.push('a'),
            'ç' => into.push('c'),
            'è'..='ë' => into.push('e'),
            'ì'..='ï' => into.push('i'),
            'ñ' => into.push('n'),
            'ò'..='ö' | 'ø' => into.push('o'),
            'ù'..='ü' => into.push('u'),
            'ý' | 'ÿ' => into.push('y'),
            'ß' => into.push_str("ss"),
            'æ' => into.push_str("ae"),
            'œ' => into.push_str("oe"),
            c => into.push(c),
        }
    }
}

/// A word in small letters without accents.
pub(crate) fn folded(word: &str) -> String {
    let mut plain = String::with_capacity(word.len());
    word.chars().for_each(|c| fold(c, &mut plain));
    plain
}

/// Accents that stand for themselves, as file names of some systems have them.
pub(crate) fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_lose_their_accents() {
        for (word, plain) in [
            ("caché", "cache"),
            ("cafe\u{301}", "cafe"),
            ("Größe", "grosse"),
            ("cœur", "coeur"),
            ("кэш", "кэш"),
            ("cache", "cache"),
        ] {
            assert_eq!(folded(word), plain, "{word}");
        }
    }
}
