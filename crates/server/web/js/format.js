// Money, times and names as the shopper reads them. Money arrives in integer minor units of the
// event's currency and is divided only here, for display.

// How payment providers count minor units; tables of browsers differ for some (a test compares these
// lists with the server's).
const WITHOUT_DIGITS = "BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF";
const WITH_THREE_DIGITS = "BHD JOD KWD OMR TND";

/** @param {string} currency */
function digitsOf(currency) {
  if (WITHOUT_DIGITS.includes(currency)) return 0;
  return WITH_THREE_DIGITS.includes(currency) ? 3 : 2;
}

/** @type {Map<string, {shown: Intl.NumberFormat, spoken: Intl.NumberFormat, unit: number}>} */
const currencies = new Map();

/** @param {string} currency */
function currencyFormat(currency) {
  let format = currencies.get(currency);
  if (!format) {
    const digits = digitsOf(currency);
    const fraction = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    const shown = new Intl.NumberFormat(undefined, { style: "currency", currency, ...fraction });
    const spoken = new Intl.NumberFormat(undefined, fraction);
    format = { shown, spoken, unit: 10 ** digits };
    currencies.set(currency, format);
  }
  return format;
}

/** @param {number} minor @param {string} currency */
export function money(minor, currency) {
  const format = currencyFormat(currency);
  return minor === 0 ? "Free" : format.shown.format(minor / format.unit);
}

/** For screen readers: "45.00 EUR" is read the same everywhere, a symbol is not. */
export function spokenMoney(/** @type {number} */ minor, /** @type {string} */ currency) {
  const format = currencyFormat(currency);
  return minor === 0
    ? "free of charge"
    : `${format.spoken.format(minor / format.unit)} ${currency}`;
}

const dayFormat = new Intl.DateTimeFormat(undefined, {
  weekday: "short",
  day: "numeric",
  month: "short",
  year: "numeric",
});
// With the zone: the hall may be in another one than its buyer.
const timeFormat = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit", timeZoneName: "short" });
const countFormat = new Intl.NumberFormat();

/** @param {string|null|undefined} time */
export function dateAndTime(time) {
  const at = time ? new Date(time) : null;
  if (!at || Number.isNaN(at.getTime())) return "";
  return `${dayFormat.format(at)}, ${timeFormat.format(at)}`;
}

/** @param {number} n */
export const count = (n) => countFormat.format(n);

/** @param {number} n @param {string} one @param {string} [many] */
export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/**
 * How many are left, in words. What is held may come back, so it is not sold out.
 * @param {{free: number, held: number, sold: number}} counts
 */
export function left({ free, held, sold }) {
  if (free > 0) return `${count(free)} left`;
  if (held > 0) return "all taken for now";
  return sold > 0 ? "sold out" : "not for sale";
}

/** "9:41", "1:02:07" or "3 days": a remaining time that ticks. @param {number} ms */
export function remaining(ms) {
  const total = Math.ceil(ms / 1000);
  if (total >= 172_800) return plural(Math.floor(total / 86_400), "day");
  const [hours, minutes, seconds] = [
    Math.floor(total / 3600),
    Math.floor((total % 3600) / 60),
    total % 60,
  ];
  const tail = `${String(seconds).padStart(2, "0")}`;
  if (hours === 0) return `${minutes}:${tail}`;
  return `${hours}:${String(minutes).padStart(2, "0")}:${tail}`;
}

/** "4 minutes", for sentences. @param {number} ms */
export function roughly(ms) {
  if (ms < 60_000) return plural(Math.max(1, Math.ceil(ms / 1000)), "second");
  return plural(Math.round(ms / 60_000), "minute");
}

/** "A, B and C" @param {string[]} words */
export function sentenceList(words) {
  if (words.length <= 1) return words.join("");
  return `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;
}
