//! hive-gpu's metadata, texts by name, as the JSON of a payload and back.
use std::collections::HashMap;
use std::iter::Peekable;
use std::str::Chars;

/// An object of texts, names in order; None for no metadata.
pub(crate) fn to_json(metadata: &HashMap<String, String>) -> Option<String> {
    let mut names: Vec<(&String, &String)> = metadata.iter().collect();
    names.sort();
    let members: Vec<String> = names.into_iter().map(|(name, text)| format!("{}:{}", quoted(name), quoted(text))).collect();
    (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")))
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            control if (control as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", control as u32)),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// The metadata of an object of texts; None for any other JSON, which another program may have put there.
pub(crate) fn from_json(text: &str) -> Option<HashMap<String, String>> {
    let mut letters = text.chars().peekable();
    let mut metadata = HashMap::new();
    expect(&mut letters, '{')?;
    if next_is(&mut letters, '}') {
        return Some(metadata);
    }
    loop {
        let name = string(&mut letters)?;
        expect(&mut letters, ':')?;
        metadata.insert(name, string(&mut letters)?);
        if next_is(&mut letters, '}') {
            return Some(metadata);
        }
        expect(&mut letters, ',')?;
    }
}

fn skip_spaces(letters: &mut Peekable<Chars<'_>>) {
    while letters.next_if(|letter| letter.is_ascii_whitespace()).is_some() {}
}

fn expect(letters: &mut Peekable<Chars<'_>>, wanted: char) -> Option<()> {
    skip_spaces(letters);
    (letters.next()? == wanted).then_some(())
}

fn next_is(letters: &mut Peekable<Chars<'_>>, wanted: char) -> bool {
    skip_spaces(letters);
    letters.next_if_eq(&wanted).is_some()
}

fn string(letters: &mut Peekable<Chars<'_>>) -> Option<String> {
    expect(letters, '"')?;
    let mut out = String::new();
    loop {
        match letters.next()? {
            '"' => return Some(out),
            '\\' => out.push(match letters.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'u' => escaped(letters)?,
                plain @ ('"' | '\\' | '/') => plain,
                _ => return None,
            }),
            other => out.push(other),
        }
    }
}

/// What follows \u: four digits, or a pair of them for a character beyond U+FFFF.
fn escaped(letters: &mut Peekable<Chars<'_>>) -> Option<char> {
    let mut unit = || (0..4).try_fold(0, |code, _| Some(code * 16 + letters.next()?.to_digit(16)?));
    let first = unit()?;
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first);
    }
    (letters.next()? == '\\' && letters.next()? == 'u').then_some(())?;
    let mut unit = || (0..4).try_fold(0, |code, _| Some(code * 16 + letters.next()?.to_digit(16)?));
    let second = unit()?;
    char::from_u32(0x10000 + ((first - 0xd800) << 10) + second.checked_sub(0xdc00)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back() {
        let texts = ["", "plain", "\"quoted\" \\ back", "line\nand\ttab\u{1}", "ümläut 漢字 🦊", "}{,:"];
        let metadata: HashMap<String, String> = texts.iter().map(|text| (format!("k {text}"), text.to_string())).collect();
        assert_eq!(from_json(&to_json(&metadata).unwrap()).unwrap(), metadata);
        assert_eq!((to_json(&HashMap::new()), from_json("{ }").unwrap().len()), (None, 0));
    }

    #[test]
    fn escapes_of_other_writers_are_read() {
        let read = from_json(r#" { "a" : "\u00fc\n\/\ud83e\udd8a" } "#).unwrap();
        assert_eq!(read["a"], "ü\n/🦊");
    }

    #[test]
    fn what_is_not_metadata_is_refused() {
        for text in [
            "",
            "[]",
            "{\"a\":1}",
            "{\"a\":\"b\"",
            "{\"a\" \"b\"}",
            "{\"a\":\"\\x\"}",
            "{\"a\":\"\\ud83e\"}",
            "{\"a\":\"\\ud83e\\u0041\"}",
        ] {
            assert!(from_json(text).is_none(), "{text}");
        }
    }
}
