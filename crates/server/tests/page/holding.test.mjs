// What is wanted becomes what is held, despite keys pressed and answers lost on the way.

import assert from "node:assert/strict";
import { test } from "node:test";
import { heldIn } from "../../web/js/basket.js";
import { Shopper } from "./shopper.mjs";
import { FakeServer, Refusal, namesOf } from "./server.mjs";

const shopperIn = (seats = 12) => {
  const server = new FakeServer(seats);
  return { server, shopper: new Shopper(server) };
};
const COMMANDS = ["find", "list", "read", "hold", "change", "release", "best", "extend", "confirm"];
const kinds = (/** @type {Shopper} */ { sent }) => sent.map(({ kind }) => kind);

test("clicks during a request go out as one change", () => {
  const { shopper } = shopperIn();
  shopper.toggle("A-1", "A-2", "A-3", "A-2");
  shopper.settle();
  assert.deepEqual(shopper.held, ["A-1", "A-3"]);
  assert.deepEqual(kinds(shopper), ["hold", "change"]);
});

test("a change without an answer is read, never sent again blindly", () => {
  for (const isDone of [true, false]) {
    const { server, shopper } = shopperIn();
    shopper.toggle("A-1");
    shopper.settle();
    shopper.toggle("A-2");
    if (isDone) server.perform(shopper.sent[1]);
    shopper.lose();
    shopper.settle();
    assert.deepEqual(shopper.held, ["A-1", "A-2"]);
    assert.deepEqual(kinds(shopper), isDone ? ["hold", "change", "read"] : ["hold", "change", "read", "change"]);
  }
});

test("places of a change without an answer are neither added nor given back twice", () => {
  for (const [wanted, isDone] of /** @type {const} */ ([[3, true], [3, false], [1, true], [1, false]])) {
    const { server, shopper } = shopperIn();
    shopper.floor(2);
    shopper.settle();
    shopper.floor(wanted);
    shopper.send();
    if (isDone) server.perform(shopper.sent[1]);
    shopper.lose();
    shopper.settle();
    assert.equal(shopper.state.hold?.units.length, wanted, `${wanted} ${isDone}`);
  }
});

test("a hold that was replaced and cannot be given back holds up no confirm", () => {
  const { shopper } = shopperIn();
  shopper.toggle("A-9");
  shopper.settle();
  shopper.press({ kind: "best", quantity: 1, category: null });
  shopper.hear();
  shopper.refuse("internal_error");
  shopper.press({ kind: "confirm" });
  shopper.send();
  if (shopper.state.pending?.kind === "release") shopper.refuse("internal_error");
  shopper.settle();
  assert.notEqual(shopper.state.booked, null);
});

test("best together that is pressed before an ended hold is found is asked for", () => {
  const { server, shopper } = shopperIn();
  shopper.toggle("A-1");
  shopper.settle();
  server.end(server.live("hold-1"), "expired");
  shopper.reload();
  shopper.press({ kind: "best", quantity: 2, category: null });
  shopper.settle();
  assert.equal(shopper.held.length, 2);
});

test("a change without an answer undoes nothing of another tab", () => {
  const { server, shopper } = shopperIn();
  shopper.toggle("A-1");
  shopper.settle();
  shopper.toggle("A-2");
  server.change(server.live("hold-1"), { add: [{ seat: "A-3" }] });
  shopper.lose();
  shopper.settle();
  assert.deepEqual(shopper.held, ["A-1", "A-2", "A-3"]);
});

test("a lost seat is no longer wanted, and the others are", () => {
  const { server, shopper } = shopperIn();
  server.hold([{ seat: "A-2" }], false);
  shopper.toggle("A-1");
  shopper.settle();
  shopper.toggle("A-2", "A-3");
  shopper.settle();
  assert.equal(shopper.state.refusal?.problem.code, "unit_unavailable");
  assert.deepEqual([shopper.held, shopper.wanted], [["A-1", "A-3"], ["A-1", "A-3"]]);
});

test("a refusal of what is no longer wanted is not shown", () => {
  const { shopper } = shopperIn();
  shopper.toggle("A-1");
  const [command] = shopper.sent;
  shopper.toggle("A-1", "A-2");
  shopper.take(command, { problem: { status: 409, code: "adjacency_refused" } });
  shopper.settle();
  assert.equal(shopper.state.refusal, null);
  assert.deepEqual(shopper.held, ["A-2"]);
});

test("a server that is too busy offers the same choice again", () => {
  const { shopper } = shopperIn();
  shopper.toggle("A-1");
  shopper.refuse();
  assert.deepEqual([shopper.state.refusal?.again?.add, shopper.wanted], [[{ seat: "A-1" }], []]);
  shopper.again();
  shopper.settle();
  assert.deepEqual(shopper.held, ["A-1"]);
});

/** Ask for two units. @type {((shopper: Shopper) => void)[]} */
const ACTS = [
  (shopper) => shopper.floor(2),
  (shopper) => shopper.press({ kind: "best", quantity: 2, category: null }),
];

test("places or best seats that were made unseen are found by their key when they are asked for again", () => {
  for (const code of ["outcome_unknown", "internal_error"]) {
    for (const act of ACTS) {
      const { server, shopper } = shopperIn();
      act(shopper);
      server.perform(shopper.sent[0]);
      shopper.refuse(code);
      act(shopper);
      shopper.settle();
      assert.deepEqual([shopper.held.length, server.holds.size], [2, 1]);
      // What is asked for after an answer is another hold.
      shopper.dispatch({ type: "swap", drop: shopper.state.wanted.requests(), add: [] });
      shopper.settle();
      act(shopper);
      shopper.settle();
      assert.deepEqual([shopper.held.length, server.holds.size], [2, 2]);
    }
  }
});

test("what was made unseen and is over when it is asked for again is made anew", () => {
  for (const act of ACTS) {
    const { server, shopper } = shopperIn();
    act(shopper);
    server.perform(shopper.sent[0]);
    shopper.refuse("outcome_unknown");
    server.now += 60_000;
    act(shopper);
    shopper.settle();
    assert.deepEqual([shopper.held.length, server.holds.size], [2, 2]);
  }
});

test("what was made unseen and another tab gave back is not taken for held when it is asked for again", () => {
  for (const act of ACTS) {
    const { server, shopper } = shopperIn();
    act(shopper);
    server.perform(shopper.sent[0]);
    shopper.refuse("outcome_unknown");
    server.end(server.live("hold-1"), "released");
    act(shopper);
    shopper.settle();
    assert.deepEqual([shopper.state.hold, shopper.state.ended?.state], [null, "released"]);
  }
});

test("what is tried again becomes what was chosen, and no more: places are not summed", () => {
  const { shopper } = shopperIn();
  shopper.floor(1);
  shopper.settle();
  shopper.floor(2);
  shopper.refuse();
  assert.deepEqual(shopper.wanted, ["floor"]);
  // Pressed twice, before the notice is gone.
  shopper.again();
  shopper.again();
  shopper.settle();
  assert.deepEqual(shopper.held, ["floor", "floor"]);
});

test("giving all back is tried again too", () => {
  const { shopper } = shopperIn();
  shopper.toggle("A-1");
  shopper.floor(2);
  shopper.settle();
  shopper.dispatch({ type: "swap", drop: shopper.state.wanted.requests(), add: [] });
  shopper.refuse();
  assert.deepEqual(shopper.wanted, ["A-1", "floor", "floor"]);
  shopper.again();
  shopper.settle();
  assert.deepEqual([shopper.state.hold, shopper.wanted], [null, []]);
});

test("what is tried again undoes nothing of another tab", () => {
  const { server, shopper } = shopperIn();
  shopper.toggle("A-1");
  shopper.settle();
  shopper.toggle("A-2");
  shopper.refuse();
  server.change(server.live("hold-1"), { add: [{ seat: "A-3" }] });
  shopper.dispatch({ type: "recheck" });
  shopper.settle();
  shopper.again();
  shopper.settle();
  assert.deepEqual(shopper.held, ["A-1", "A-2", "A-3"]);
});

test("what is chosen while more time or the best seats are asked for outlives their refusal", () => {
  for (const press of /** @type {const} */ ([{ kind: "extend" }, { kind: "best", quantity: 2, category: null }])) {
    for (const problem of [{ status: 503, code: "overloaded" }, { status: 409, code: "unit_unavailable", conflicts: [] }]) {
      const { shopper } = shopperIn();
      shopper.toggle("A-1", "A-2");
      shopper.settle();
      shopper.press(press);
      const command = shopper.state.pending;
      assert.ok(command);
      // One is given back, which must not be bought, and another is chosen.
      shopper.toggle("A-2", "A-5");
      shopper.take(command, { problem });
      assert.equal(shopper.state.refusal?.problem.code, problem.code);
      shopper.settle();
      assert.deepEqual(shopper.held, ["A-1", "A-5"]);
    }
  }
});

test("a server that made a mistake is asked what became of a change", () => {
  const { server, shopper } = shopperIn();
  shopper.floor(1);
  shopper.settle();
  shopper.floor(2);
  server.perform(shopper.sent[1]);
  shopper.refuse("internal_error");
  shopper.settle();
  assert.deepEqual([shopper.held, shopper.wanted], [["floor", "floor"], ["floor", "floor"]]);
});

test("more than the event allows is refused without a request", () => {
  const { shopper } = shopperIn();
  shopper.toggle("A-1", "A-2", "A-3", "A-4", "A-5");
  assert.equal(shopper.state.refusal?.problem.code, "too_many_units");
  shopper.settle();
  assert.equal(shopper.held.length, 4);
});

test("an answer that never becomes what is wanted ends in the server's word", () => {
  const { server, shopper } = shopperIn();
  const unchanged = () => ({ answer: server.shown(server.live("hold-1")) });
  shopper.server = { perform: (command) => (command.kind === "change" ? unchanged() : server.perform(command)) };
  shopper.toggle("A-1");
  shopper.settle();
  shopper.toggle("A-2");
  shopper.settle();
  assert.deepEqual([shopper.held, shopper.wanted], [["A-1"], ["A-1"]]);
});

test("the best seats take the place of the others, which are given back", () => {
  const { server, shopper } = shopperIn();
  shopper.toggle("A-9");
  shopper.settle();
  shopper.press({ kind: "best", quantity: 2, category: null });
  shopper.toggle("A-5");
  shopper.settle();
  assert.deepEqual(shopper.held, ["A-1", "A-2", "A-5"]);
  assert.equal(server.owner.get("A-9"), "");
  assert.equal(shopper.state.chosen?.units.equals(heldIn(shopper.state)), false);
});

test("a hold that ended elsewhere can be held again", () => {
  const { server, shopper } = shopperIn();
  shopper.toggle("A-1");
  shopper.settle();
  server.end(server.live("hold-1"), "revoked");
  shopper.toggle("A-2");
  shopper.settle();
  const { ended, hold } = shopper.state;
  assert.deepEqual([ended, hold], [{ state: "revoked", units: [{ seat: "A-1" }, { seat: "A-2" }] }, null]);
  shopper.dispatch({ type: "swap", drop: [], add: ended?.units ?? [] });
  shopper.settle();
  assert.deepEqual(shopper.held, ["A-1", "A-2"]);
});

test("what another tab added or took away is taken over by what is pressed here, and never undone", () => {
  const add = { add: [{ seat: "A-3" }] };
  const drop = { drop: [{ seat: "A-2" }] };
  const extend = (/** @type {Shopper} */ shopper) => shopper.press({ kind: "extend" });
  const giveBack = (/** @type {Shopper} */ shopper) =>
    shopper.dispatch({ type: "swap", drop: shopper.state.wanted.requests(), add: [] });
  const extendAndChoose = (/** @type {Shopper} */ shopper) => (extend(shopper), shopper.toggle("A-4"));
  /** @type {[string, object, (shopper: Shopper) => void, string[]][]} */ const cases = [
    ["choose one more", add, (shopper) => shopper.toggle("A-4"), ["A-1", "A-2", "A-3", "A-4"]],
    ["choose one more", drop, (shopper) => shopper.toggle("A-4"), ["A-1", "A-4"]],
    ["give one back", add, (shopper) => shopper.toggle("A-2"), ["A-1", "A-3"]],
    ["give all back", add, giveBack, ["A-3"]],
    ["give all back", drop, giveBack, []],
    ["more time", add, extend, ["A-1", "A-2", "A-3"]],
    ["more time", drop, extend, ["A-1"]],
    ["more time, and choose one more", add, extendAndChoose, ["A-1", "A-2", "A-3", "A-4"]],
  ];
  for (const [name, change, act, held] of cases) {
    const { server, shopper } = shopperIn();
    shopper.toggle("A-1", "A-2");
    shopper.settle();
    server.change(server.live("hold-1"), change);
    act(shopper);
    shopper.settle();
    const told = `${name} ${JSON.stringify(change)}`;
    assert.deepEqual([shopper.held, shopper.wanted, shopper.state.refusal], [held, held, null], told);
    assert.deepEqual([...server.owner].flatMap(([id, owner]) => (owner ? [id] : [])), held, told);
  }
});

test("places of both tabs are held, as many as each chose", () => {
  const { server, shopper } = shopperIn();
  shopper.floor(1);
  shopper.settle();
  server.change(server.live("hold-1"), { add: [{ area: "floor", quantity: 1 }] });
  shopper.floor(2);
  shopper.settle();
  assert.deepEqual([shopper.held, server.holdOf("hold-1").places], [["floor", "floor", "floor"], 3]);
});

test("the best seats take nothing from another tab that chose more meanwhile", () => {
  const { server, shopper } = shopperIn();
  shopper.toggle("A-9");
  shopper.settle();
  server.change(server.live("hold-1"), { add: [{ seat: "A-8" }] });
  shopper.press({ kind: "best", quantity: 1, category: null });
  shopper.settle();
  assert.deepEqual([shopper.held, shopper.state.replaced, shopper.state.refusal], [["A-1"], null, null]);
  assert.equal(server.owner.get("A-8"), "hold-1");
});

test("what another tab changed is shown before it is bought", () => {
  const { server, shopper } = shopperIn();
  shopper.toggle("A-1");
  shopper.settle();
  server.change(server.live("hold-1"), { add: [{ seat: "A-2" }] });
  shopper.press({ kind: "confirm" });
  shopper.settle();
  assert.equal(shopper.state.refusal?.problem.code, "stale_fence");
  assert.deepEqual([shopper.held, shopper.wanted], [["A-1", "A-2"], ["A-1", "A-2"]]);
  shopper.press({ kind: "confirm" });
  shopper.settle();
  assert.deepEqual(shopper.state.booked, { id: "booking-hold-1", isLate: false });
  const keys = shopper.sent.filter(({ kind }) => kind === "confirm").map(({ call }) => call.key);
  assert.equal(new Set(keys).size, 2);
});

test("what is chosen while the rest is given back is held next", () => {
  const { shopper } = shopperIn();
  shopper.toggle("A-1");
  shopper.settle();
  shopper.toggle("A-1", "A-2");
  shopper.settle();
  assert.deepEqual(shopper.held, ["A-2"]);
  assert.deepEqual(kinds(shopper), ["hold", "release", "hold"]);
});

test("a confirm whose answer was lost is the same confirm after a reload", () => {
  for (const isDone of [true, false]) {
    const { server, shopper } = shopperIn();
    shopper.toggle("A-1");
    shopper.settle();
    shopper.press({ kind: "confirm" });
    const [, confirm] = shopper.sent;
    if (isDone) server.perform(confirm);
    shopper.reload();
    shopper.settle();
    if (!isDone) {
      shopper.press({ kind: "confirm" });
      assert.equal(shopper.sent.at(-1)?.call.key, confirm.call.key);
      shopper.settle();
    }
    assert.deepEqual(shopper.state.booked, { id: "booking-hold-1", isLate: false });
  }
});

test("what is chosen after a reload, before an answer, joins the hold of before it", () => {
  for (const isStored of [true, false]) {
    const { server, shopper } = shopperIn();
    shopper.toggle("A-1");
    shopper.settle();
    if (!isStored) shopper.stored = null;
    shopper.reload();
    shopper.toggle("A-5");
    assert.equal(shopper.sent.at(-1)?.kind, isStored ? "find" : "list");
    shopper.settle();
    assert.deepEqual([shopper.held, server.holds.size], [["A-1", "A-5"], 1]);
  }
});

test("a hold that cannot be read is not forgotten: it is looked for again when the shopper acts", () => {
  /** @type {((shopper: Shopper) => void)[]} */
  const acts = [
    (shopper) => shopper.again(),
    (shopper) => shopper.toggle("A-6"),
    (shopper) => shopper.dispatch({ type: "recheck" }),
  ];
  for (const code of ["read_only", "internal_error"]) {
    for (const act of acts) {
      const { shopper } = shopperIn();
      shopper.toggle("A-1");
      shopper.settle();
      shopper.reload();
      shopper.toggle("A-5");
      shopper.refuse(code);
      // Nothing is sent by itself, and what was chosen meanwhile is still wanted.
      assert.deepEqual([shopper.state.pending, shopper.wanted], [null, ["A-5"]]);
      assert.equal(shopper.state.refusal?.problem.code, code);
      const { stored } = shopper;
      assert.equal(stored.id, "hold-1");
      act(shopper);
      assert.equal(shopper.sent.at(-1)?.kind, "find");
      shopper.settle();
      assert.equal(shopper.state.hold?.id, shopper.stored.id);
      assert.ok(shopper.held.includes("A-5"), shopper.held.join());
    }
  }
});

test("a notice that is dismissed gives up what was chosen, and no hold", () => {
  const { shopper } = shopperIn();
  shopper.toggle("A-1");
  shopper.settle();
  shopper.reload();
  shopper.toggle("A-5");
  shopper.refuse("internal_error");
  shopper.dispatch({ type: "dismiss", what: "refusal" });
  assert.deepEqual([shopper.state.pending, shopper.wanted], [null, []]);
  shopper.toggle("A-6");
  shopper.settle();
  assert.deepEqual(shopper.held, ["A-1", "A-6"]);
});

test("a read that is refused leaves what was chosen meanwhile alone", () => {
  const { shopper } = shopperIn();
  shopper.toggle("A-1", "A-2");
  shopper.settle();
  shopper.dispatch({ type: "recheck" });
  shopper.toggle("A-2", "A-5");
  shopper.refuse();
  assert.deepEqual(shopper.wanted, ["A-1", "A-5"]);
  shopper.again();
  shopper.settle();
  assert.deepEqual(shopper.held, ["A-1", "A-5"]);
});

test("the hold that the best seats took the place of is given back, if not at once", () => {
  const { server, shopper } = shopperIn();
  shopper.toggle("A-9");
  shopper.settle();
  shopper.press({ kind: "best", quantity: 1, category: null });
  shopper.hear();
  assert.equal(shopper.sent.at(-1)?.call.isPatient, true);
  shopper.refuse();
  shopper.again();
  shopper.settle();
  assert.deepEqual([shopper.held, server.owner.get("A-9")], [["A-1"], ""]);
});

test("a second press changes nothing while the first is on its way", () => {
  const { shopper } = shopperIn();
  shopper.toggle("A-1");
  shopper.settle();
  shopper.press({ kind: "confirm" });
  shopper.press({ kind: "confirm" });
  shopper.press({ kind: "extend" });
  shopper.toggle("A-2");
  assert.deepEqual(shopper.wanted, ["A-1"]);
  shopper.settle();
  assert.deepEqual(kinds(shopper), ["hold", "confirm"]);
});

test("units of another tab's hold bring that hold here", () => {
  const { server, shopper } = shopperIn();
  server.hold([{ seat: "A-1" }, { seat: "A-2" }]);
  shopper.toggle("A-1", "A-3");
  shopper.settle();
  assert.deepEqual(shopper.held, ["A-1", "A-2", "A-3"]);
  assert.equal(shopper.state.refusal, null);
});

test("a hold that ran out while the page was away is told, one that was given back is not", () => {
  for (const [state, told] of [["expired", "expired"], ["released", undefined]]) {
    const { server, shopper } = shopperIn();
    shopper.toggle("A-1");
    shopper.settle();
    server.end(server.live("hold-1"), String(state));
    shopper.reload();
    shopper.settle();
    assert.equal(shopper.state.ended?.state, told);
  }
});

/** Numbers in `0..below` that one seed determines. @param {number} seed */
function numbers(seed) {
  let state = seed * 2_654_435_761 + 1;
  return (/** @type {number} */ below) => {
    state = (state ^ (state << 13)) >>> 0;
    state = (state ^ (state >>> 17)) >>> 0;
    state = (state ^ (state << 5)) >>> 0;
    return state % below;
  };
}

/** One shopper, a rival, another tab, lost answers, reloads and time. @param {number} seed */
function run(seed) {
  const { server, shopper } = shopperIn(8);
  const pick = numbers(seed);
  /** @type {string[][]} */ const agreed = [];
  /** What another tab added to a hold, or took from it, and was not chosen anew here.
   *  @type {Map<string, {hold: string, isHeld: boolean}>} */
  const others = new Map();
  const chosen = (/** @type {any[]} */ units) => units.forEach(({ seat }) => others.delete(seat));
  const isChosen = (/** @type {string} */ id) => {
    const { state } = shopper;
    return heldIn(state).seats.has(id) !== state.wanted.seats.has(id);
  };
  const elsewhere = (/** @type {string} */ id, /** @type {boolean} */ isHeld) => {
    const hold = server.live(shopper.state.hold?.id);
    if (!isHeld && hold.seats.size + hold.places < 2) return;
    server.change(hold, { [isHeld ? "add" : "drop"]: [{ seat: id }] });
    // What is on its way here is chosen here.
    if (isChosen(id)) others.delete(id);
    else others.set(id, { hold: hold.id, isHeld });
  };
  const seat = () => `A-${1 + pick(8)}`;
  // What was done under its key is answered so.
  const refuse = (/** @type {string} */ code) => !server.keys.has(shopper.state.pending?.call.key ?? "") && shopper.refuse(code);
  const toggle = (/** @type {string} */ id) => (chosen([{ seat: id }]), shopper.toggle(id));
  const again = () => {
    const { drop = [], add = [] } = shopper.state.refusal?.again ?? {};
    chosen([...drop, ...add]);
    shopper.again();
  };
  const acts = [
    () => toggle(seat()),
    () => toggle(seat()),
    () => shopper.floor(pick(4)),
    () => shopper.hear(),
    () => shopper.hear(),
    () => shopper.lose(),
    // It is done, and the answer is lost: all but a change is sent again by the same key.
    () => {
      const { pending } = shopper.state;
      if (pending) server.perform(pending);
      shopper.lose();
    },
    () => server.hold(server.best(1), false),
    // Another tab of the same shopper.
    () => elsewhere(server.best(1)[0].seat, true),
    () => elsewhere([...server.live(shopper.state.hold?.id).seats][0], false),
    () => pick(3) === 0 && server.end(server.live(shopper.state.hold?.id), "revoked"),
    () => (server.now += 9000),
    () => refuse("overloaded"),
    () => refuse("internal_error"),
    again,
    () => shopper.dispatch({ type: "dismiss", what: "refusal" }),
    () => shopper.dispatch({ type: "recheck" }),
    () => shopper.press({ kind: "best", quantity: 1 + pick(3), category: null }),
    () => shopper.press({ kind: "extend" }),
    () => {
      chosen(shopper.state.wanted.requests());
      shopper.dispatch({ type: "swap", drop: shopper.state.wanted.requests(), add: [] });
    },
    () => pick(4) === 0 && shopper.reload(),
    () => {
      if (!shopper.state.task && shopper.state.hold) agreed.push(shopper.wanted);
      shopper.press({ kind: "confirm" });
    },
  ];
  for (let k = 0; k < 60 && !shopper.state.booked; k += 1) {
    try {
      acts[pick(acts.length)]();
    } catch (error) {
      // There was nothing to take, or no hold to change.
      if (!(error instanceof Refusal)) throw error;
    }
  }
  again();
  shopper.settle();
  if (!shopper.state.booked) {
    shopper.dispatch({ type: "recheck" });
    shopper.settle();
  }
  return { server, shopper, agreed, others };
}

test("five hundred random runs end with what is wanted held, and only what was agreed to bought", () => {
  const seen = new Set();
  for (let seed = 1; seed <= 500; seed += 1) {
    const { server, shopper, agreed, others } = run(seed);
    const { state } = shopper;
    assert.ok(heldIn(state).equals(state.wanted), `seed ${seed}: wanted is held`);
    if (state.hold) {
      const { units } = server.shown(server.holds.get(state.hold.id));
      assert.deepEqual(shopper.held, namesOf(units), `seed ${seed}: the server agrees`);
    }
    // What the best seats took the place of was given back here.
    const replaced = shopper.sent.flatMap(({ kind, hold }) => (kind === "best" && hold ? [hold] : []));
    for (const [id, { hold, isHeld }] of others) {
      const { state: now, seats } = server.holdOf(hold);
      const isReplaced = replaced.some((one) => one.id === hold && one.units.some((unit) => unit.seat === id));
      const isOpen = ["active", "consumed"].includes(now) || (now === "released" && isHeld && !isReplaced);
      const isSo = now !== "released" && seats.has(id) === isHeld;
      assert.ok(!isOpen || isSo, `seed ${seed}: ${id} of ${hold}, ${now}, as another tab left it: ${isHeld}`);
    }
    // Only a hold that the best seats took the place of may be left over by a reload, until its time is over.
    const live = [...server.holds.values()].filter((hold) => hold.mine && server.shown(hold).state === "active");
    const isReplaced = shopper.sent.some(({ kind }) => kind === "best");
    assert.ok(live.length <= 1 || isReplaced, `seed ${seed}: no hold is forgotten`);
    for (const { units } of server.bookings.values()) {
      assert.ok(agreed.some((basket) => basket.join() === units.join()), `seed ${seed}: bought as seen`);
    }
    assert.ok(server.bookings.size <= 1, `seed ${seed}: bought once`);
    seen.add(state.refusal?.problem.code).add(state.ended?.state).add(state.booked !== null);
    for (const { kind } of shopper.sent) seen.add(kind);
  }
  // The runs have all that may happen.
  const all = ["unit_unavailable", "stale_fence", "expired", "revoked", true, ...COMMANDS];
  assert.deepEqual(all.filter((known) => !seen.has(known)), []);
});
