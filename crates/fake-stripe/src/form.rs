//! Forms in Stripe's encoding: `a=b&metadata%5Bbooking%5D=c`. Names keep their brackets.

/// The fields of a form or a query, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    /// Parses a form; `None` when an escape is broken or the text is no UTF-8.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let field = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name)?, decode(value)?))
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        pairs.map(field).collect::<Option<_>>().map(Self)
    }

    /// Finds the value of a field; of several with that name, the first.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(own, _)| own == name)?;
        Some(value)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Lists the fields `outer[..]`, such as those of `metadata`, by the name in the brackets.
    pub(super) fn inside(&self, outer: &str) -> impl Iterator<Item = (String, String)> {
        let inner = move |(name, value): &(String, String)| {
            let name = name.strip_prefix(outer)?.strip_prefix('[')?;
            Some((name.strip_suffix(']')?.to_owned(), value.clone()))
        };
        self.0.iter().filter_map(inner)
    }

    /// Returns one text for all forms with the same fields in any order.
    pub(super) fn canonical(&self) -> String {
        let mut fields = self.0.clone();
        fields.sort();
        format!("{fields:?}")
    }
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => digit(rest.next()?)? * 16 + digit(rest.next()?)?,
            plain => plain,
        });
    }
    String::from_utf8(bytes).ok()
}

fn digit(byte: u8) -> Option<u8> {
    u8::try_from(char::from(byte).to_digit(16)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_with_its_brackets() {
        let form = Form::parse("amount=100&metadata%5Bbooking%5D=bkg+1%2F2&flag").unwrap();
        assert_eq!(form.get("amount"), Some("100"));
        assert_eq!(form.get("flag"), Some(""));
        let inside: Vec<_> = form.inside("metadata").collect();
        assert_eq!(inside, [("booking".to_owned(), "bkg 1/2".to_owned())]);
    }

    #[test]
    fn a_broken_escape_is_refused() {
        for text in ["a=%", "a=%4", "a=%zz", "a=%ff"] {
            assert_eq!(Form::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_says_the_same_is_the_same() {
        let of = |text| Form::parse(text).unwrap().canonical();
        assert_eq!(of("a=1&b=2"), of("b=2&a=1"));
        assert_ne!(of("a=1&b=2"), of("a=1&b=3"));
        assert_ne!(of("a=1"), of("a=1&b=2"));
    }
}
