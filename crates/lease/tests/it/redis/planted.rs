//! Bugs in the scripts, each a line that was changed, and the test that sees it. A change that no
//! test sees is a hole in the tests. `lease.md` 11.
//!
//! Three comparisons are not changed here, because no test can see it: tickets differ, so `<=` for
//! `<` between them is the same; and at which side of one millisecond of the server's clock a beat
//! is old or a cap used up, no client can tell.

use super::conformance::server;
use super::{asks, batches, epochs, grants, queue, wake};
#[cfg(feature = "redlock")]
use crate::redlock::{conformance as redlock, faults};

macro_rules! catches {
    ($($test:ident: $file:literal, $line:literal => $instead:literal, $by:path;)+) => {
        $(
            #[test]
            fn $test() {
                crate::planting::caught(($file, $line, $instead), $by);
            }
        )+
    };
}

// Who holds: an owner and its token, all names or none.
catches! {
    a_blind_delete: "release.lua",
        "elseif find(held, ARGV[i + 1], 1, true) == 1 then" => "elseif true then",
        grants::release_frees_only_what_is_the_owners;
    a_blind_delete_in_a_batch: "release.lua",
        "elseif find(held, ARGV[i + 1], 1, true) == 1 then" => "elseif true then",
        batches::each_release_of_a_batch_has_its_own_answer;
    a_release_without_the_token: "release.lua",
        "elseif find(held, ARGV[i + 1], 1, true) == 1 then"
        => "elseif sub(held, 1, 32) == sub(ARGV[i + 1], 1, 32) then",
        batches::each_release_of_a_batch_has_its_own_answer;
    a_release_without_the_owner: "release.lua",
        "elseif find(held, ARGV[i + 1], 1, true) == 1 then"
        => "elseif sub(held, 33, #ARGV[i + 1]) == sub(ARGV[i + 1], 33) then",
        batches::each_release_of_a_batch_has_its_own_answer;
    a_key_released_twice_in_one_batch: "release.lua",
        "if not held or #held < 84 or ended[key] then"
        => "if not held or #held < 84 then",
        batches::each_release_of_a_batch_has_its_own_answer;
    a_release_of_what_is_no_lease: "release.lua",
        "if not held or #held < 84 or ended[key] then" => "if not held or ended[key] then",
        grants::a_key_of_another_type_is_refused_and_left_alone;
    a_release_that_tells_nobody: "release.lua",
        "redis.pcall('SPUBLISH', ARGV[i], ARGV[i + 1])" => "",
        server::a_release_wakes;
    a_release_of_a_group_that_tells_nobody: "release.lua",
        "redis.pcall('SPUBLISH', ARGV[i], ARGV[i + 1])" => "",
        wake::a_release_of_part_of_a_group_wakes_the_group;
    a_renewal_that_sets: "renew.lua",
        "local answer, by = 0, ''"
        => "local answer, by = 0, '' if not held then \
            redis.call('SET', KEYS[i], table.concat({owner, token, string.format('%016.0f', 0), \
            string.format('%016.0f', now), ''}, '|'), 'PX', ttl) answer = ttl end",
        grants::renew_needs_owner_and_token_and_creates_nothing;
    a_renewal_without_the_token: "renew.lua",
        "if string.sub(held, 1, 32) ~= owner or string.sub(held, 34, 49) ~= token then"
        => "if string.sub(held, 1, 32) ~= owner then",
        grants::renew_needs_owner_and_token_and_creates_nothing;
    a_renewal_without_the_owner: "renew.lua",
        "if string.sub(held, 1, 32) ~= owner or string.sub(held, 34, 49) ~= token then"
        => "if string.sub(held, 34, 49) ~= token then",
        grants::renew_needs_owner_and_token_and_creates_nothing;
    a_grant_over_a_holder: "grant.lua",
        "local done = pcall('SET', key, owner .. '|' .. head .. number .. rest, 'NX', 'PX', life)"
        => "local done = pcall('SET', key, owner .. '|' .. head .. number .. rest, 'PX', life)",
        grants::a_free_name_is_granted_and_asking_again_gives_the_same_token;
    two_of_one_batch_get_the_name: "grant.lua",
        "local done = pcall('SET', key, owner .. '|' .. head .. number .. rest, 'NX', 'PX', life)"
        => "local done = pcall('SET', key, owner .. '|' .. head .. number .. rest, 'PX', life)",
        batches::of_two_items_that_want_the_same_name_the_first_gets_it;
    an_owner_that_conflicts_with_itself: "grant.lua",
        "elseif type(held) == 'string' and #held >= 84 and find(held, owner, 1, true) ~= 1 then"
        => "elseif type(held) == 'string' and #held >= 84 then",
        grants::a_free_name_is_granted_and_asking_again_gives_the_same_token;
    data_of_another_is_a_holder: "grant.lua",
        "elseif type(held) == 'string' and #held >= 84 and find(held, owner, 1, true) ~= 1 then"
        => "elseif type(held) == 'string' and find(held, owner, 1, true) ~= 1 then",
        grants::a_key_of_another_type_is_refused_and_left_alone;
    a_refusal_of_another_item: "grant.lua",
        "answers[count + 1], answers[count + 2], answers[count + 3] = i - 3, left, by"
        => "answers[count + 1], answers[count + 2], answers[count + 3] = i - 2, left, by",
        batches::each_item_of_a_mixed_batch_has_its_own_answer;
    a_group_of_which_part_is_kept: "acquire.lua",
        "if #others > 0 or first and (not mine or first < mine) then"
        => "if #others > 0 then for i = 3, final do call('SET', KEYS[i], table.concat({owner, \
            digits(1), digits(0), digits(now), ''}, '|'), 'PX', ttl, 'NX') end end \
            if #others > 0 or first and (not mine or first < mine) then",
        grants::a_group_is_granted_whole_or_not_at_all;
    a_group_granted_over_one_conflict: "acquire.lua",
        "if #others > 0 or first and (not mine or first < mine) then"
        => "if #others > final - 3 or first and (not mine or first < mine) then",
        grants::a_group_is_granted_whole_or_not_at_all;
    a_refused_owner_that_keeps_its_part: "acquire.lua",
        "call('DEL', unpack(ours))" => "",
        grants::what_is_ours_is_freed_when_the_rest_is_anothers;
    a_permit_that_takes_the_rest_along: "acquire.lua",
        "others, picked, first_key, final = {}, free - 3, free, free"
        => "others, picked, first_key = {}, free - 3, free",
        server::of_many_at_once_as_many_win_as_there_are_permits;
    another_permit_for_the_same_owner: "acquire.lua",
        "if #ours == final - 2 or any and #ours == 1 then" => "if #ours == final - 2 then",
        server::asking_again_gives_the_same_permit;
    asking_again_is_a_new_grant: "acquire.lua",
        "if #ours == final - 2 or any and #ours == 1 then" => "if false then",
        grants::a_free_name_is_granted_and_asking_again_gives_the_same_token;
    a_lease_over_what_is_none: "acquire.lua",
        "elseif type(held) ~= 'string' or #held < 84 then" => "elseif type(held) ~= 'string' then",
        grants::a_key_of_another_type_is_refused_and_left_alone;
    a_queue_that_is_not_noticed: "grant.lua",
        "if stored[2] then" => "if false then",
        queue::waiters_are_served_in_order_and_nobody_overtakes;
    a_queue_that_is_not_marked: "acquire.lua",
        "call('SET', mark, '1', 'PX', MARK_MS)" => "",
        queue::waiters_are_served_in_order_and_nobody_overtakes;
}

// How long: ttl and cap.
catches! {
    a_lease_without_an_end: "grant.lua",
        "local done = pcall('SET', key, owner .. '|' .. head .. number .. rest, 'NX', 'PX', life)"
        => "local done = pcall('SET', key, owner .. '|' .. head .. number .. rest, 'NX')",
        grants::every_key_but_fence_ends_by_itself;
    a_group_without_an_end: "acquire.lua",
        "call('SET', KEYS[i], value, 'PX', life)" => "call('SET', KEYS[i], value)",
        grants::every_key_but_fence_ends_by_itself;
    a_grant_above_its_cap: "grant.lua",
        "local life = cap > 0 and cap < tonumber(ARGV[1]) and ARGV[2] or ARGV[1]"
        => "local life = ARGV[1]",
        grants::nothing_lives_longer_than_its_cap;
    a_grant_that_forgets_its_cap: "grant.lua",
        "local rest = '|' .. (cap > 0 and digits(now + cap) or '0000000000000000') .. '|' .. digits(now) .. '|'"
        => "local rest = '|' .. digits(0) .. '|' .. digits(now) .. '|'",
        grants::nothing_lives_longer_than_its_cap;
    a_group_above_its_cap: "acquire.lua",
        "local life = cap > 0 and math.min(ttl, cap) or ttl" => "local life = ttl",
        grants::nothing_lives_longer_than_its_cap;
    asking_again_beyond_the_cap: "acquire.lua",
        "granted = math.min(granted, cap_at - now)" => "",
        grants::nothing_lives_longer_than_its_cap;
    a_cap_of_none_is_a_cap: "acquire.lua",
        "if cap_at > 0 then" => "if cap_at >= 0 then",
        grants::a_free_name_is_granted_and_asking_again_gives_the_same_token;
    asking_again_gives_no_life: "acquire.lua",
        "call('PEXPIRE', ours[i], granted, 'GT')" => "",
        server::b3_asking_again_gives_the_same_grant;
    asking_again_for_less: "acquire.lua",
        "call('PEXPIRE', ours[i], granted, 'GT')" => "call('PEXPIRE', ours[i], granted)",
        server::b3_asking_for_less_shortens_nothing;
    a_renewal_beyond_the_cap: "renew.lua",
        "answer = math.min(ttl, cap_at - now)" => "",
        grants::nothing_lives_longer_than_its_cap;
    a_renewal_of_some_of_its_names: "renew.lua",
        "broken[owner .. token] = true" => "",
        server::b4_renew_lengthens_all_names_or_none;
    a_renewal_that_gives_no_life: "renew.lua",
        "redis.call('PEXPIRE', KEYS[i], grants[i], 'GT')" => "",
        grants::renew_needs_owner_and_token_and_creates_nothing;
    a_renewal_for_less: "renew.lua",
        "redis.call('PEXPIRE', KEYS[i], grants[i], 'GT')" => "redis.call('PEXPIRE', KEYS[i], grants[i])",
        server::b3_asking_for_less_shortens_nothing;
    a_look_that_ends_the_lease: "renew.lua",
        "redis.call('PEXPIRE', KEYS[i], grants[i], 'GT')" => "redis.call('PEXPIRE', KEYS[i], grants[i])",
        grants::renew_needs_owner_and_token_and_creates_nothing;
}

// Tokens: epoch and counter, never one of them alone.
catches! {
    a_bare_counter: "acquire.lua",
        "token = digits(least + 1)" => "token = digits(least % COUNTERS + 1)",
        batches::tokens_of_groups_at_once_differ_and_rise;
    an_epoch_of_another_server: "grant.lua",
        "or not find(call('INFO', 'replication'), 'master_replid:' .. sub(record, 18, 57), 1, true) then"
        => "then",
        epochs::tokens_rise_through_flush_restart_and_an_evicted_record;
    an_epoch_of_another_server_for_a_group: "acquire.lua",
        "if sub(record, 18, 57) ~= server or epoch < floor_of(floor / COUNTERS) or least % COUNTERS == COUNTERS - 1 then"
        => "if epoch < floor_of(floor / COUNTERS) or least % COUNTERS == COUNTERS - 1 then",
        epochs::tokens_rise_through_flush_restart_and_an_evicted_record;
    a_floor_is_passed_over: "grant.lua",
        "if last < tonumber(ARGV[3]) or low + #KEYS > 999999999 or last % 4294967296 + #KEYS > 4294967295"
        => "if low + #KEYS > 999999999 or last % 4294967296 + #KEYS > 4294967295",
        grants::tokens_of_a_name_rise_and_the_floor_lifts_them;
    a_floor_is_passed_over_in_the_end: "acquire.lua",
        "local least = math.max(counted, floor)" => "local least = counted",
        grants::tokens_of_a_name_rise_and_the_floor_lifts_them;
    a_floor_of_a_later_epoch_starts_it: "acquire.lua",
        "if sub(record, 18, 57) ~= server or epoch < floor_of(floor / COUNTERS) or least % COUNTERS == COUNTERS - 1 then"
        => "if sub(record, 18, 57) ~= server or least % COUNTERS == COUNTERS - 1 then",
        grants::tokens_of_a_name_rise_and_the_floor_lifts_them;
    a_floor_of_the_same_epoch_costs_one: "acquire.lua",
        "if sub(record, 18, 57) ~= server or epoch < floor_of(floor / COUNTERS) or least % COUNTERS == COUNTERS - 1 then"
        => "if sub(record, 18, 57) ~= server or counted < floor or least % COUNTERS == COUNTERS - 1 then",
        grants::tokens_of_a_name_rise_and_the_floor_lifts_them;
    a_counter_that_runs_over: "acquire.lua",
        "if sub(record, 18, 57) ~= server or epoch < floor_of(floor / COUNTERS) or least % COUNTERS == COUNTERS - 1 then"
        => "if sub(record, 18, 57) ~= server or epoch < floor_of(floor / COUNTERS) then",
        epochs::a_full_counter_asks_for_the_next_epoch;
    a_counter_that_runs_over_in_a_batch: "grant.lua",
        "if last < tonumber(ARGV[3]) or low + #KEYS > 999999999 or last % 4294967296 + #KEYS > 4294967295"
        => "if last < tonumber(ARGV[3]) or low + #KEYS > 999999999",
        epochs::a_full_counter_asks_for_the_next_epoch;
    a_count_that_loses_its_carry: "grant.lua",
        "if last < tonumber(ARGV[3]) or low + #KEYS > 999999999 or last % 4294967296 + #KEYS > 4294967295"
        => "if last < tonumber(ARGV[3]) or last % 4294967296 + #KEYS > 4294967295",
        epochs::a_count_goes_on_where_its_lower_digits_run_over;
    one_token_for_a_batch: "grant.lua",
        "local number = format('%09d', low + step * granted + 1)"
        => "local number = format('%09d', low + 1)",
        batches::tokens_of_one_batch_differ_and_rise;
    a_count_that_is_not_kept: "grant.lua",
        "call('SET', KEYS[1], head .. counted .. sub(record, 17))" => "",
        grants::tokens_of_a_name_rise_and_the_floor_lifts_them;
    a_count_of_a_batch_that_is_not_kept: "grant.lua",
        "call('SET', KEYS[1], head .. counted .. sub(record, 17))"
        => "call('SET', KEYS[1], head .. format('%09d', low + 1) .. sub(record, 17))",
        batches::tokens_of_one_batch_differ_and_rise;
    a_count_that_an_error_cuts_off: "grant.lua",
        "local held, left, by = pcall('GET', key), pcall('PTTL', key), ''"
        => "local held, left, by = pcall('GET', key), call('PTTL', key), ''",
        batches::a_command_that_is_forbidden_gives_no_token_twice;
    a_count_of_a_group_that_is_not_kept: "acquire.lua",
        "call('SET', fence, token .. sub(record, 17))" => "",
        batches::tokens_of_groups_at_once_differ_and_rise;
    a_grant_that_forgets_the_ask: "grant.lua",
        "call('SET', KEYS[1], head .. counted .. sub(record, 17))"
        => "call('SET', KEYS[1], head .. counted .. sub(record, 17, 57))",
        asks::an_ask_stands_while_others_are_granted;
    a_labelled_grant_that_forgets_the_ask: "acquire.lua",
        "call('SET', fence, token .. sub(record, 17))"
        => "call('SET', fence, token .. sub(record, 17, 57))",
        asks::an_ask_stands_while_others_are_granted;
    an_ask_for_ever: "acquire.lua",
        "if sub(ask, 1, #server) ~= server then" => "if ask == '' then",
        asks::an_ask_of_the_server_before_is_forgotten;
    an_epoch_drawn_before_a_flush: "install.lua",
        "local stands = string.sub(record, 59) == ask and string.sub(ask, 1, #rid) == rid"
        => "local stands = true",
        asks::an_epoch_that_was_overtaken_on_its_way_is_not_installed;
    the_same_epoch_again: "install.lua",
        "if not stands or (epoch == 0 and ep > 0 and ep < CLOCK_EPOCHS) or (epoch > 0 and epoch <= ep) then"
        => "if not stands or (epoch == 0 and ep > 0 and ep < CLOCK_EPOCHS) or (epoch > 0 and epoch < ep) then",
        asks::a_record_refuses_an_epoch_that_is_not_higher;
    no_epoch_over_an_epoch: "install.lua",
        "if not stands or (epoch == 0 and ep > 0 and ep < CLOCK_EPOCHS) or (epoch > 0 and epoch <= ep) then"
        => "if not stands or (epoch > 0 and epoch <= ep) then",
        epochs::a_process_without_epochs_does_not_weaken_a_namespace_that_has_them;
    tokens_that_begin_again_with_the_data: "install.lua",
        "token = math.max(token, ARGV[3], (time[1] * 1000 + math.floor(time[2] / 1000)) * GRANTS_PER_MS)" => "",
        epochs::without_a_source_tokens_follow_the_clock_of_the_server;
    a_floor_that_a_clock_passes_over: "install.lua",
        "token = math.max(token, ARGV[3], (time[1] * 1000 + math.floor(time[2] / 1000)) * GRANTS_PER_MS)"
        => "token = math.max(token, (time[1] * 1000 + math.floor(time[2] / 1000)) * GRANTS_PER_MS)",
        epochs::without_a_source_a_floor_of_a_later_epoch_lifts_the_token;
    an_epoch_that_goes_on_counting: "install.lua",
        "token = epoch * COUNTERS" => "token = epoch * COUNTERS + token % COUNTERS",
        epochs::a_full_counter_asks_for_the_next_epoch;
}

// Queues.
catches! {
    a_passer_by_overtakes: "acquire.lua",
        "if #others > 0 or first and (not mine or first < mine) then" => "if #others > 0 then",
        queue::waiters_are_served_in_order_and_nobody_overtakes;
    last_come_first_served: "acquire.lua",
        "if #others > 0 or first and (not mine or first < mine) then"
        => "if #others > 0 or first and (not mine or first > mine) then",
        queue::waiters_are_served_in_order_and_nobody_overtakes;
    the_dead_wait_for_ever: "acquire.lua",
        "elseif math.abs(now - beat) > ALIVE_MS then" => "elseif false then",
        queue::a_waiter_that_died_is_passed_over_after_its_beat_is_old;
    a_dead_waiter_ahead_of_the_clock: "acquire.lua",
        "elseif math.abs(now - beat) > ALIVE_MS then" => "elseif now - beat > ALIVE_MS then",
        queue::a_dead_waiter_of_a_clock_that_was_ahead_is_passed_over;
    the_living_count_as_dead: "acquire.lua",
        "elseif math.abs(now - beat) > ALIVE_MS then" => "elseif now - beat > 0 then",
        server::a_dead_waiter_costs_three_seconds;
    a_death_that_is_always_three_seconds_off: "acquire.lua",
        "first, dies = ticket, beat + ALIVE_MS + 1 - now"
        => "first, dies = ticket, ALIVE_MS + 1",
        server::a_dead_waiter_costs_three_seconds;
    a_queue_that_is_one_too_long: "acquire.lua",
        "if not mine and alive >= QUEUE_MAX then" => "if not mine and alive > QUEUE_MAX then",
        queue::a_full_queue_says_so;
    a_place_that_is_not_given_up: "release.lua",
        "changed = redis.pcall('HDEL', KEYS[i], ARGV[i + 1]) == 1 or changed" => "",
        queue::waiters_are_served_in_order_and_nobody_overtakes;
}

// A node of a Redlock.
#[cfg(feature = "redlock")]
catches! {
    a_vote_for_what_another_has: "rl_acquire.lua",
        "if #conflicts > 0 then" => "if false then",
        redlock::b1_one_owner_at_a_time;
    a_vote_for_a_token_of_the_past: "rl_acquire.lua",
        "if last > offered or (last == offered and string.sub(record, 18) ~= owner) then"
        => "if false then",
        faults::a_majority_that_remembers_grants_no_lower_token;
    one_token_for_two_owners: "rl_acquire.lua",
        "if last > offered or (last == offered and string.sub(record, 18) ~= owner) then"
        => "if last > offered then",
        faults::a_majority_that_remembers_grants_no_lower_token;
    a_lease_that_cannot_be_healed: "rl_acquire.lua",
        "if last > offered or (last == offered and string.sub(record, 18) ~= owner) then"
        => "if last >= offered then",
        faults::a_node_that_lost_only_the_key_is_healed;
    a_vote_that_is_not_remembered: "rl_acquire.lua",
        "redis.call('SET', KEYS[i + 1], offered .. '|' .. owner, 'PX', RECORD_MS)" => "",
        faults::a_majority_that_remembers_grants_no_lower_token;
    a_young_node_votes: "rl_acquire.lua",
        "if age * 1000 < least_age then" => "if false then",
        faults::restarted_node_heals_and_does_not_vote;
    an_age_of_whole_seconds: "rl_acquire.lua",
        "age = math.max(age - 1, 0)" => "",
        faults::a_restarted_node_sits_out_its_whole_time;
    a_vote_again_for_less: "rl_acquire.lua",
        "redis.call('PEXPIRE', ours[i], granted, 'GT')" => "redis.call('PEXPIRE', ours[i], granted)",
        redlock::b3_asking_for_less_shortens_nothing;
    a_vote_without_a_cap: "rl_acquire.lua",
        "granted, cap_at = math.min(ttl, cap), now + cap" => "granted, cap_at = ttl, 0",
        redlock::b4_renew_stops_at_the_cap;
}
