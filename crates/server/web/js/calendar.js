// A booking as a calendar file (RFC 5545).

/** @typedef {{id: string, name: string, startsAt: string, lines: string[], link: string}} Entry */

const LINE_BYTES = 73;

/** @param {Entry} entry @param {string} now */
export function calendarFile({ id, name, startsAt, lines, link }, now) {
  const fields = [
    "BEGIN:VCALENDAR",
    "VERSION:2.0",
    "PRODID:-//Soldonce//Booking//EN",
    "BEGIN:VEVENT",
    `UID:${id}@soldonce`,
    `DTSTAMP:${stamp(now)}`,
    `DTSTART:${stamp(startsAt)}`,
    `SUMMARY:${escaped(name)}`,
    `DESCRIPTION:${escaped([...lines, link].join("\n"))}`,
    `URL:${link}`,
    "END:VEVENT",
    "END:VCALENDAR",
  ];
  return fields.map(folded).join("");
}

/** 2026-12-01T19:30:00.000Z > 20261201T193000Z @param {string} time */
function stamp(time) {
  return `${new Date(time).toISOString().slice(0, 19).replaceAll(/[-:]/g, "")}Z`;
}

/** @param {string} text */
function escaped(text) {
  return text.replaceAll(/[\\;,]/g, "\\$&").replaceAll(/\r?\n/g, "\\n");
}

/** Long lines go on in the next one, behind a space; no character is cut. @param {string} line */
function folded(line) {
  let out = "";
  let used = 0;
  for (const letter of line) {
    const size = new TextEncoder().encode(letter).length;
    if (used + size > LINE_BYTES) {
      out += "\r\n ";
      used = 1;
    }
    out += letter;
    used += size;
  }
  return `${out}\r\n`;
}
