//! The lease backend: what the library's doctor finds on it. `lease.md` 8.

use soldonce_lease::backend::{Finding as LeaseFinding, Verdict};
use soldonce_lease::{BackendError, Doctor, block_on};

use super::{Finding, Grade};
use crate::lease::backend::{self, BackendArgs};

/// Connects and runs the library's doctor. A backend that cannot be reached is a finding too.
/// Missing tables of leases are a remark: perhaps none are used.
pub(super) fn look(args: &BackendArgs) -> Vec<Finding> {
    match report(args) {
        Ok(findings) => findings.into_iter().map(finding).collect(),
        Err(error) if args.lacks_tables(&error) => {
            let fix = "nothing to do: the first `soldonce lease run` makes them";
            let found = "its tables are not there";
            vec![Finding::remark("lease backend", found, fix)]
        }
        Err(error) => {
            let fix = if matches!(error, BackendError::Config(_)) {
                "fix the options or the server's settings"
            } else {
                "start the server, or look at the network between"
            };
            vec![Finding::wrong("lease backend", error.to_string(), fix)]
        }
    }
}

fn report(args: &BackendArgs) -> Result<Vec<LeaseFinding>, BackendError> {
    let builder = backend::builder(args)?.doctor(Doctor::Off);
    Ok(block_on(block_on(builder.connect())?.doctor()))
}

fn finding(found: LeaseFinding) -> Finding {
    Finding {
        what: found.check,
        grade: match found.verdict {
            Verdict::Ok => Grade::Good,
            Verdict::NotVerifiable => Grade::NotVerifiable,
            Verdict::Warn => Grade::Remark,
            Verdict::Fail => Grade::Wrong,
        },
        found: found.found,
        fix: (!found.fix.is_empty()).then(|| found.fix.into()),
    }
}
