//! The gate for SQL targets: PostgreSQL and SQLite compare rows the same way.

use super::{Trust, UnanchoredToken};
use crate::{FencingToken, Tag};

/// Makes the table of [`FENCE_ADMIT`], for PostgreSQL and SQLite: the highest token seen of each
/// resource.
pub const FENCE_TABLE: &str = "\
-- fence_table
CREATE TABLE IF NOT EXISTS soldonce_fence (
    resource text NOT NULL PRIMARY KEY,
    token bigint NOT NULL,
    tag bigint NOT NULL
)";

/// Admits a write in the transaction of that write. Parameters: resource, then number and tag of
/// [`Bound`]. One row: write and commit. No row: stale, roll back. The parameters are written `$1`
/// and stand in order, so SQLite counts them as PostgreSQL does.
pub const FENCE_ADMIT: &str = "\
-- fence_admit
INSERT INTO soldonce_fence AS f (resource, token, tag) VALUES ($1, $2, $3)
ON CONFLICT (resource) DO UPDATE SET token = excluded.token, tag = excluded.tag
    WHERE (f.token, f.tag) <= (excluded.token, excluded.tag)
RETURNING token";

/// Reads number and tag of the highest token seen of the resource `$1`: what `overtaken` wants to
/// know after a stale write.
pub const FENCE_HIGHEST: &str = "\
-- fence_highest
SELECT token, tag FROM soldonce_fence WHERE resource = $1";

/// A token as SQL keeps it: two columns of type `bigint`, compared in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bound {
    /// The number, below 2^53.
    pub token: i64,
    /// The tag, below 2^63.
    pub tag: i64,
}

impl Bound {
    /// The token that these columns keep; `None` when they never kept one.
    pub fn token(self) -> Option<FencingToken> {
        let tag = Tag::from_bits(u64::try_from(self.tag).ok()?);
        FencingToken::new(u64::try_from(self.token).ok()?, tag)
    }
}

impl Trust {
    /// The numbers to bind for `token`, if it is trusted.
    ///
    /// # Errors
    /// [`UnanchoredToken`] when it has no epoch and the gate trusts anchored ones only.
    pub fn bind(self, token: FencingToken) -> Result<Bound, UnanchoredToken> {
        let token = self.check(token)?;
        let fits = |bits: u64| i64::try_from(bits).unwrap_or(i64::MAX);
        Ok(Bound {
            token: fits(token.number()),
            tag: fits(token.tag().bits()),
        })
    }
}

/// The two columns of a target's table that keep the highest token seen.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    /// Keeps the number: `bigint not null default 0`.
    pub token: &'a str,
    /// Keeps the tag: `bigint not null default 0`.
    pub tag: &'a str,
}

impl Default for Columns<'_> {
    fn default() -> Self {
        Self {
            token: "lease_token",
            tag: "lease_tag",
        }
    }
}

/// How a statement writes its parameters, and the numbers of the two that bind the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholders {
    /// `$3`: PostgreSQL. SQLite would take it for a name.
    Dollar {
        /// Number of the token's parameter.
        token: u16,
        /// Number of the tag's parameter.
        tag: u16,
    },
    /// `?3`: SQLite.
    Question {
        /// Number of the token's parameter.
        token: u16,
        /// Number of the tag's parameter.
        tag: u16,
    },
}

impl Placeholders {
    fn texts(self) -> (String, String) {
        match self {
            Placeholders::Dollar { token, tag } => (format!("${token}"), format!("${tag}")),
            Placeholders::Question { token, tag } => (format!("?{token}"), format!("?{tag}")),
        }
    }
}

/// Parts of an `UPDATE` that lets no stale token write. Zero rows touched means stale (or that the
/// row is not there).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragments {
    /// For the `SET` list: `lease_token = $3, lease_tag = $4`.
    pub set: String,
    /// For the `WHERE` clause, in brackets: `((lease_token, lease_tag) <= ($3, $4))`.
    pub check: String,
}

/// A column name that would not be one word of SQL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no column name: letters, digits and _ only, and no digit first")]
pub struct InvalidColumn(String);

fn column(text: &str) -> Result<&str, InvalidColumn> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let word = !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit());
    if word && text.bytes().all(legal) {
        Ok(text)
    } else {
        Err(InvalidColumn(text.to_owned()))
    }
}

/// The fragments for a table with these columns. They are plain text without data: build the
/// statement once, and bind the token with [`Trust::bind`].
///
/// ```
/// use soldonce_lease::FencingToken;
/// use soldonce_lease::gate::{self, Columns, Placeholders, Trust};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gate = gate::sql(Columns::default(), Placeholders::Dollar { token: 3, tag: 4 })?;
/// let update = format!("UPDATE job SET state = $1, {} WHERE id = $2 AND {}", gate.set, gate.check);
/// assert_eq!(
///     update,
///     "UPDATE job SET state = $1, lease_token = $3, lease_tag = $4 \
///      WHERE id = $2 AND ((lease_token, lease_tag) <= ($3, $4))"
/// );
/// let token = FencingToken::from_parts(1, 7).expect("a token"); // lease.live_token()?
/// let bound = Trust::Anchored.bind(token)?; // $3 and $4; 0 rows updated means stale
/// assert_eq!(bound.token, (1 << 32) + 7);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`InvalidColumn`] when a column is not a plain word.
pub fn sql(columns: Columns<'_>, at: Placeholders) -> Result<Fragments, InvalidColumn> {
    let (token, tag) = (column(columns.token)?, column(columns.tag)?);
    let (new_token, new_tag) = at.texts();
    Ok(Fragments {
        set: format!("{token} = {new_token}, {tag} = {new_tag}"),
        check: format!("(({token}, {tag}) <= ({new_token}, {new_tag}))"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_name_the_columns_and_the_parameters() {
        let parts = sql(
            Columns::default(),
            Placeholders::Dollar { token: 3, tag: 4 },
        );
        let parts = parts.expect("legal columns");
        assert_eq!(parts.set, "lease_token = $3, lease_tag = $4");
        assert_eq!(parts.check, "((lease_token, lease_tag) <= ($3, $4))");
        let question = Placeholders::Question { token: 1, tag: 2 };
        let parts = sql(Columns::default(), question).expect("legal columns");
        assert_eq!(parts.set, "lease_token = ?1, lease_tag = ?2");
    }

    #[test]
    fn a_column_is_one_plain_word() {
        for bad in ["", "1a", "a b", "a;--", "a\"", "ä", "t.token"] {
            let columns = Columns {
                token: bad,
                tag: "tag",
            };
            let parts = sql(columns, Placeholders::Dollar { token: 1, tag: 2 });
            assert_eq!(parts, Err(InvalidColumn(bad.to_owned())));
        }
    }

    #[test]
    fn the_largest_token_fits_and_comes_back() {
        let largest = FencingToken::new((1 << 53) - 1, Tag::from_bits(u64::MAX)).expect("legal");
        let bound = Trust::Anchored.bind(largest).expect("anchored");
        assert_eq!(bound.tag, i64::MAX);
        assert_eq!(bound.token(), Some(largest));
        assert_eq!(Bound { token: 0, tag: 0 }.token(), None, "nothing seen yet");
    }

    #[test]
    fn a_token_without_epoch_is_not_bound_unless_trusted() {
        let bare = FencingToken::from_parts(0, 7).expect("legal");
        assert_eq!(Trust::Anchored.bind(bare), Err(UnanchoredToken(bare)));
        assert!(Trust::Unanchored.bind(bare).is_ok());
    }
}
