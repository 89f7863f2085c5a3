//! Bugs in the scripts, each a line that was changed, and the promise that it breaks. A change that
//! no test sees is a hole in the tests.

use super::{model, scripts};

macro_rules! catches {
    ($($test:ident: $file:literal, $line:literal => $instead:literal, $by:path;)+) => {
        $(
            #[test]
            fn $test() {
                super::bench::caught([$file, $line, $instead], $by);
            }
        )+
    };
}

// Who is kept away, and for how long.
catches! {
    a_belief_for_ever: "shield_try.lua",
        "elseif left > 0 and kind ~= 'f' and not (kind == 'c' and owner == who) then"
        => "elseif kind ~= 'f' and not (kind == 'c' and owner == who) then",
        scripts::a_hold_is_believed_until_its_end_and_not_at_it;
    a_belief_one_millisecond_longer: "shield_try.lua",
        "elseif left > 0 and kind ~= 'f' and not (kind == 'c' and owner == who) then"
        => "elseif left >= 0 and kind ~= 'f' and not (kind == 'c' and owner == who) then",
        scripts::a_claim_keeps_others_away_and_ends_by_itself;
    claims_that_keep_no_buyer_away: "shield_try.lua",
        "elseif left > 0 and kind ~= 'f' and not (kind == 'c' and owner == who) then"
        => "elseif left > 0 and kind ~= 'f' and kind ~= 'c' then",
        scripts::a_claim_keeps_others_away_and_ends_by_itself;
    a_double_click_is_kept_away: "shield_try.lua",
        "elseif left > 0 and kind ~= 'f' and not (kind == 'c' and owner == who) then"
        => "elseif left > 0 and kind ~= 'f' then",
        scripts::his_own_claim_passes_and_begins_anew;
    whose_sold_seat_it_was_passes: "shield_try.lua",
        "elseif left > 0 and kind ~= 'f' and not (kind == 'c' and owner == who) then"
        => "elseif left > 0 and kind ~= 'f' and owner ~= who then",
        scripts::what_is_sold_is_refused_to_everybody_for_a_while;
    a_holder_is_kept_away: "shield_try.lua",
        "if left > 0 and kind == 'h' and owner == who then" => "if false then",
        scripts::his_own_hold_is_for_the_ledger_to_see;
    every_hold_is_his: "shield_try.lua",
        "if left > 0 and kind == 'h' and owner == who then" => "if left > 0 and kind == 'h' then",
        scripts::a_hold_is_believed_until_its_end_and_not_at_it;
    a_hold_that_is_over_is_still_his: "shield_try.lua",
        "if left > 0 and kind == 'h' and owner == who then"
        => "if kind == 'h' and owner == who then",
        scripts::his_own_hold_is_for_the_ledger_to_see;
    his_claim_counts_as_his_hold: "shield_try.lua",
        "if left > 0 and kind == 'h' and owner == who then" => "if left > 0 and owner == who then",
        scripts::his_own_claim_passes_and_begins_anew;
    beliefs_of_any_length: "shield_try.lua",
        "if left > (kind == 'c' and claim_ms or keep_ms) then" => "if false then",
        scripts::no_belief_is_longer_than_it_may_be;
    claims_as_long_as_holds: "shield_try.lua",
        "if left > (kind == 'c' and claim_ms or keep_ms) then" => "if left > keep_ms then",
        scripts::no_belief_is_longer_than_it_may_be;
    a_number_that_is_none: "shield_try.lua",
        "if not kind or #version > VERSION_DIGITS_MAX then" => "if not kind then",
        scripts::what_is_no_entry_of_ours_stops_no_buyer;
}

// All or nothing, every conflict, and what a try leaves.
catches! {
    one_conflict_does_not_count: "shield_try.lua",
        "if #conflicts > 1 then" => "if #conflicts > 5 then",
        scripts::one_conflict_is_enough;
    the_last_conflict_alone: "shield_try.lua",
        "local n = #conflicts" => "local n = 1",
        scripts::all_or_nothing_with_every_conflict;
    what_is_left_is_claimed: "shield_try.lua",
        "if #conflicts > 1 then"
        => "if #conflicts > 1 then redis.call('HSET', KEYS[1], units[1], 'c|0|' .. now + 9 .. '|' .. who)",
        scripts::all_or_nothing_with_every_conflict;
    a_look_that_claims: "shield_try.lua",
        "elseif not claims then" => "elseif false then",
        scripts::a_look_claims_nothing;
    a_claim_without_the_version: "shield_try.lua",
        "entries[2 * i - 1], entries[2 * i] = units[i], 'c|' .. versions[i] .. ends"
        => "entries[2 * i - 1], entries[2 * i] = units[i], 'c|0' .. ends",
        scripts::a_claim_keeps_the_version;
    a_claim_that_is_not_written: "shield_try.lua",
        "redis.call('HSET', KEYS[1], unpack(entries))" => "",
        scripts::a_claim_keeps_others_away_and_ends_by_itself;
    claims_that_stay_for_ever: "shield_try.lua",
        "redis.call('PEXPIRE', KEYS[1], keep_ms)" => "",
        scripts::a_zone_ends_by_itself;
    a_try_of_any_size: "shield_try.lua",
        "if #units < 1 or #units > UNITS_MAX then" => "if #units < 1 then",
        scripts::a_call_is_bounded_and_a_refused_one_writes_nothing;
}

// Notes and drops.
catches! {
    late_notes_are_taken: "shield_note.lua",
        "answer[i] = version >= versions[unit] and 1 or 0" => "answer[i] = 1",
        scripts::a_late_note_brings_no_old_state_back;
    repeated_notes_are_refused: "shield_note.lua",
        "answer[i] = version >= versions[unit] and 1 or 0"
        => "answer[i] = version > versions[unit] and 1 or 0",
        scripts::a_note_that_comes_twice_changes_nothing;
    versions_compared_as_text: "shield_note.lua",
        "answer[i] = version >= versions[unit] and 1 or 0"
        => "answer[i] = ARGV[at + 2] >= string.format('%.0f', versions[unit]) and 1 or 0",
        scripts::a_late_note_brings_no_old_state_back;
    the_last_note_of_a_call_wins: "shield_note.lua",
        "versions[unit] = version" => "",
        scripts::of_two_notes_in_one_call_the_newer_stays;
    garbage_keeps_the_truth_out: "shield_note.lua",
        "versions[units[i]] = is_ours and tonumber(version) or 0"
        => "versions[units[i]] = version and tonumber(version) or 0",
        scripts::what_is_no_entry_of_ours_stops_no_buyer;
    a_note_that_ends_at_once: "shield_note.lua",
        "local ends = string.format('|%.0f|', now + ARGV[at + 3])"
        => "local ends = string.format('|%.0f|', now)",
        scripts::a_hold_is_believed_until_its_end_and_not_at_it;
    a_note_without_its_holder: "shield_note.lua",
        "entries[#entries + 1] = string.char(ARGV[at]) .. '|' .. ARGV[at + 2] .. ends .. ARGV[at + 4]"
        => "entries[#entries + 1] = string.char(ARGV[at]) .. '|' .. ARGV[at + 2] .. ends .. '0'",
        scripts::his_own_hold_is_for_the_ledger_to_see;
    a_note_that_is_not_written: "shield_note.lua",
        "redis.call('HSET', KEYS[1], unpack(entries))" => "",
        model::the_scripts_do_what_the_model_does;
    notes_that_stay_for_ever: "shield_note.lua",
        "redis.call('PEXPIRE', KEYS[1], keep_ms)" => "",
        scripts::a_zone_ends_by_itself;
    a_note_of_any_size: "shield_note.lua",
        "if count < 1 or count > UNITS_MAX or count % 1 ~= 0 then" => "if count < 1 then",
        scripts::a_call_is_bounded_and_a_refused_one_writes_nothing;
    a_blind_drop: "shield_drop.lua",
        "answer[i] = kind == 'c' and owner == who and 1 or 0"
        => "answer[i] = kind == 'c' and 1 or 0",
        scripts::only_his_own_claims_are_given_up;
    a_drop_of_a_hold: "shield_drop.lua",
        "answer[i] = kind == 'c' and owner == who and 1 or 0"
        => "answer[i] = owner == who and 1 or 0",
        scripts::only_his_own_claims_are_given_up;
    a_drop_that_forgets_the_version: "shield_drop.lua",
        "table.insert(entries, 'f|' .. version .. '|0|0')" => "table.insert(entries, 'f|0|0|0')",
        scripts::a_claim_keeps_the_version;
    a_drop_that_drops_nothing: "shield_drop.lua",
        "redis.call('HSET', KEYS[1], unpack(entries))" => "",
        scripts::only_his_own_claims_are_given_up;
}
