// Money, times and names as the shopper reads them. Money arrives in integer minor units of the
// event's currency and is divided only here, for display.

/** @type {Map<string, {shown: Intl.NumberFormat, spoken: Intl.NumberFormat, unit: number}>} */
const currencies = new Map();

/** @param {string} currency */
function currencyFormat(currency) {
  let format = currencies.get(currency);
  if (!format) {
    const shown = new Intl.NumberFormat(undefined, { style: "currency", currency });
    const digits = shown.resolvedOptions().maximumFractionDigits ?? 2;
    const spoken = new Intl.NumberFormat(undefined, {
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
    });
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
const timeFormat = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
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
