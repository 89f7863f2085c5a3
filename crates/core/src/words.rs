//! Declares kinds of things together with their words, so that no list of either is written twice.

/// Declares an enum of plain variants, each with the word that answers, rows and the audit have for it.
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])* $name:ident: $($(#[$of:meta])* $variant:ident = $word:literal,)+) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$of])* $variant,)+
        }

        impl $name {
            /// Every one, in the order of its number in rows.
            pub const ALL: [Self; Self::WORDS.len()] = [$(Self::$variant),+];
            /// The word of every one, in the same order.
            pub const WORDS: [&'static str; [$($word),+].len()] = [$($word),+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    };
}

pub(crate) use words;
