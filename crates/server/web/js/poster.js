// A picture for an event that has none: rows of seats around a stage, in colours that follow from
// the event's id. The same event always looks the same.

const WIDTH = 640;
const HEIGHT = 360;

/** @type {[string, string, string][]} Ground, seats, light. */
const SCHEMES = [
  ["#1d2b53", "#7ea6ff", "#ffd27d"],
  ["#3a1730", "#ff8fb1", "#ffe3a8"],
  ["#10332e", "#58d6ae", "#f7f3c0"],
  ["#3b2310", "#ffad66", "#fff0c9"],
  ["#26184a", "#b79bff", "#ffc8ec"],
  ["#0f2f3f", "#69cdf2", "#ffdfa1"],
];

/** A small generator with a seed, so that the picture needs no memory. @param {string} text */
function seeded(text) {
  let state = 2166136261;
  for (const letter of text) state = Math.imul(state ^ letter.charCodeAt(0), 16777619);
  return () => {
    state = Math.imul(state ^ (state >>> 15), 2246822519) + 0x9e3779b9;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
}

/** @param {HTMLCanvasElement} canvas @param {string} id */
export function drawPoster(canvas, id) {
  canvas.width = WIDTH;
  canvas.height = HEIGHT;
  const pen = canvas.getContext("2d");
  if (!pen) return;
  const random = seeded(id);
  for (let k = 0; k < 4; k += 1) random();
  const [ground, seats, light] = SCHEMES[Math.floor(random() * SCHEMES.length)];
  pen.fillStyle = ground;
  pen.fillRect(0, 0, WIDTH, HEIGHT);
  const middle = WIDTH * (0.3 + random() * 0.4);
  const glow = pen.createRadialGradient(middle, -30, 10, middle, -30, HEIGHT * 1.15);
  glow.addColorStop(0, `${light}d0`);
  glow.addColorStop(0.35, `${light}38`);
  glow.addColorStop(1, `${light}00`);
  pen.fillStyle = glow;
  pen.fillRect(0, 0, WIDTH, HEIGHT);
  const rows = 7 + Math.floor(random() * 4);
  const bend = 0.7 + random() * 0.5;
  for (let row = 0; row < rows; row += 1) {
    const radius = 110 + row * 34;
    const step = 25 / radius;
    for (let angle = 0.12; angle < Math.PI - 0.12; angle += step) {
      const x = middle + Math.cos(angle) * radius * 1.25;
      const y = -24 + Math.sin(angle) * radius * bend;
      const taken = random();
      pen.globalAlpha = taken < 0.3 ? 0.16 : 0.55 + 0.45 * random();
      pen.fillStyle = taken > 0.975 ? light : seats;
      pen.beginPath();
      pen.roundRect(x - 8, y - 8, 16, 16, 5);
      pen.fill();
    }
  }
  pen.globalAlpha = 1;
}
