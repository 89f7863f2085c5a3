//! Declares enums together with their words, so that no list of either is written twice.

/// Declares an enum of plain variants, each with the word that answers, rows and the audit have for it.
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])* $vis:vis $name:ident: $($(#[$of:meta])* $variant:ident = $word:literal,)+) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name {
            $($(#[$of])* $variant,)+
        }

        impl $name {
            /// Every variant, in the order of its number in rows.
            $vis const ALL: [Self; Self::WORDS.len()] = [$(Self::$variant),+];
            /// The word of every variant, in the same order.
            $vis const WORDS: [&'static str; [$($word),+].len()] = [$($word),+];

            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        // A kind of one crate need not use all of it.
        const _: &str = $name::ALL[0].as_str();
    };
}

pub(crate) use words;
