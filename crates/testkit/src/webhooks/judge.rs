//! Checks what a sender must guarantee: signatures that verify, one body for one id, the messages
//! of one subject in order, each of them delivered, no retry before the `Retry-After` of an answer.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Answer, Received, is_by_one_of};

/// Lists what is wrong with the received requests, in words. `told` has the subjects and types of
/// the messages in the ledger's order: each must have been accepted, in that order per subject.
pub fn violations(
    requests: &[Received],
    secrets: &[&str],
    told: &[(String, String)],
) -> Vec<String> {
    let mut found = Vec::new();
    let mut bodies: BTreeMap<&str, &[u8]> = BTreeMap::new();
    for request in requests {
        let id = &request.id;
        if !is_by_one_of(secrets, request) {
            found.push(format!("{id} is not signed by a secret that counts"));
        }
        if request.content_type != "application/json" {
            found.push(format!("{id} is {:?}", request.content_type));
        }
        if *bodies.entry(id).or_insert(&request.body) != request.body {
            found.push(format!("{id} came with two bodies"));
        }
    }
    found.extend(too_early(requests));
    let mut heard: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut known = std::collections::BTreeSet::new();
    for request in requests.iter().filter(|request| request.answer.is_taken()) {
        // A request that comes again after it was accepted is ignored by its id.
        if known.insert(&request.id) {
            match subject_and_type(&request.body) {
                Some((subject, kind)) => heard.entry(subject).or_default().push(kind),
                None => found.push(format!("{} has no subject or no type", request.id)),
            }
        }
    }
    let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (subject, kind) in told {
        expected
            .entry(subject.clone())
            .or_default()
            .push(kind.clone());
    }
    for (subject, kinds) in expected {
        let heard = heard.remove(&subject).unwrap_or_default();
        if heard != kinds {
            found.push(format!(
                "{subject}: {heard:?} was heard, {kinds:?} was told"
            ));
        }
    }
    for (subject, kinds) in heard {
        found.push(format!("{subject}: {kinds:?} was heard and never told"));
    }
    found
}

/// Lists the messages that came again before the `Retry-After` was over, by the sender's clock.
fn too_early(requests: &[Received]) -> Vec<String> {
    let mut found = Vec::new();
    let mut allowed: BTreeMap<&str, u64> = BTreeMap::new();
    for request in requests {
        let at: u64 = request.timestamp.parse().unwrap_or_default();
        if allowed.get(&*request.id).is_some_and(|from| at < *from) {
            found.push(format!("{} came again too early", request.id));
        }
        if let Answer::Later(_, seconds) = &request.answer {
            let seconds: u64 = seconds.parse().unwrap_or_default();
            allowed.insert(&request.id, at.saturating_add(seconds));
        }
    }
    found
}

/// Parses a message: the `id` of its data, and its type; `None` if a field is missing.
fn subject_and_type(body: &[u8]) -> Option<(String, String)> {
    let body: Value = serde_json::from_slice(body).ok()?;
    body.get("timestamp")?.as_str()?;
    let subject = body.get("data")?.get("id")?.as_str()?;
    Some((subject.to_owned(), body.get("type")?.as_str()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::super::{Answer, sign};
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn request(id: &str, kind: &str) -> Received {
        let body = format!(r#"{{"type":"{kind}","timestamp":"t","data":{{"id":"bkg_1"}}}}"#);
        let signature = sign(SECRET, id, "7", body.as_bytes()).unwrap();
        Received {
            path: "/hooks".to_owned(),
            id: id.to_owned(),
            timestamp: "7".to_owned(),
            signature: format!("v1,{}", STANDARD.encode(signature)),
            content_type: "application/json".to_owned(),
            body: body.into_bytes(),
            answer: Answer::Status(200),
        }
    }

    fn judged(requests: &[Received]) -> Vec<String> {
        let told = ["sold", "cancelled"].map(|kind| ("bkg_1".to_owned(), kind.to_owned()));
        violations(requests, &[SECRET], &told)
    }

    #[test]
    fn what_is_right_passes_and_what_comes_twice_too() {
        let (first, second) = (request("msg_1", "sold"), request("msg_2", "cancelled"));
        assert!(judged(&[first.clone(), second.clone()]).is_empty());
        assert!(judged(&[first.clone(), first.clone(), second.clone()]).is_empty());
        assert!(judged(&[first.clone(), second, first]).is_empty());
    }

    #[test]
    fn every_wrong_is_seen() {
        let (first, second) = (request("msg_1", "sold"), request("msg_2", "cancelled"));
        let lost = judged(std::slice::from_ref(&first));
        let turned = judged(&[second.clone(), first.clone()]);
        let refused = Received {
            answer: Answer::Status(500),
            ..second.clone()
        };
        let never_taken = judged(&[first.clone(), refused]);
        let forged = Received {
            signature: first.signature.clone(),
            ..second.clone()
        };
        let wrong_bytes = judged(&[first.clone(), forged]);
        let other_body = Received {
            id: first.id.clone(),
            ..second.clone()
        };
        let two_bodies = judged(&[first.clone(), other_body, second.clone()]);
        let foreign = request("msg_3", "sold");
        let too_many = judged(&[first.clone(), second.clone(), foreign]);
        let later = Received {
            answer: Answer::Later(503, "1".to_owned()),
            ..first.clone()
        };
        let too_early = judged(&[later, first, second]);
        for found in [
            lost,
            turned,
            never_taken,
            wrong_bytes,
            two_bodies,
            too_many,
            too_early,
        ] {
            assert!(!found.is_empty());
        }
    }
}
