use soldonce_testkit::player::{Part, Player};
use soldonce_testkit::{PATIENCE, until};

/// Repeats what it hears, until it hears the end.
fn play(part: &mut Part) {
    part.say(&part.words().join("+"));
    loop {
        match part.hear().unwrap().as_str() {
            "end" => return,
            line => part.say(line),
        }
    }
}

#[test]
fn a_player_hears_speaks_stands_still_and_ends() {
    if let Some(mut part) = Part::of_this_process() {
        return play(&mut part);
    }
    let mut player = Player::start(&["two", "words"]).unwrap();
    assert_eq!(player.hear().unwrap(), "two+words");
    player.pause().unwrap();
    let status = format!("/proc/{}/stat", player.pid());
    let stopped = || std::fs::read_to_string(&status).unwrap().contains(") T ");
    until("the process is stopped", PATIENCE, stopped).unwrap();
    player.tell("hello").unwrap();
    player.resume().unwrap();
    assert_eq!(player.hear().unwrap(), "hello");
    player.tell("end").unwrap();
    assert!(player.ended().unwrap().success());
    assert!(player.hear().is_err(), "it is gone");
}

#[test]
fn a_player_that_is_killed_says_no_more() {
    if let Some(mut part) = Part::of_this_process() {
        return play(&mut part);
    }
    let mut player = Player::start(&["one"]).unwrap();
    assert_eq!(player.hear().unwrap(), "one");
    player.kill().unwrap();
    assert!(!player.ended().unwrap().success());
    assert!(player.tell("hello").is_err() || player.hear().is_err());
}
