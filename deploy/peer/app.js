// The routes that `soldonce lab storm` uses, with the status codes of the product.
import { randomUUID } from "node:crypto";

import express from "express";

import { makeSeats } from "./seats.js";

const SEATS_MAX = 200;

export function makeApp({ flow, pool, settings }) {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.use(onlyWith(`Bearer ${settings.key}`));
  app.use(express.json({ limit: "16kb" }));

  app.post("/v1/events", async (request, response) => {
    const { id, chart } = request.body ?? {};
    const seats = chart?.seats_per_row;
    if (typeof id !== "string" || !(Number.isInteger(seats) && seats > 0 && seats <= SEATS_MAX)) {
      return refuse(response, 400, `an event is an id and a grid of one row of 1 to ${SEATS_MAX} seats`);
    }
    await makeSeats(pool, id, Array.from({ length: seats }, (_, place) => `A-${place + 1}`));
    response.status(201).json({ id });
  });

  app.post("/v1/events/:event/holds", async (request, response) => {
    const { holder, units } = request.body ?? {};
    const seat = units?.length === 1 && units[0]?.seat;
    if (typeof holder !== "string" || typeof seat !== "string") {
      return refuse(response, 400, "a hold is a holder and one seat");
    }
    const hold = await flow.hold({ id: randomUUID(), event: request.params.event, seat, holder });
    if (!hold) return refuse(response, 409, "the seat is taken");
    response.status(201).json(hold);
  });

  app.get("/v1/events/:event/seats", async (request, response) => {
    response.json({ held: await flow.held(request.params.event) });
  });

  app.post("/v1/events/:event/cancel", async (request, response) => {
    await flow.cancel(request.params.event);
    response.json({ id: request.params.event, state: "cancelled" });
  });

  // Four arguments make it the handler of errors.
  app.use((error, _request, response, _next) => {
    if (!error.status) console.error(error);
    refuse(response, error.status ?? 500, error.status ? error.message : "");
  });
  return app;
}

function onlyWith(authorization) {
  return (request, response, next) => {
    if (request.get("authorization") === authorization) return next();
    refuse(response, 401, "no such key");
  };
}

function refuse(response, status, detail) {
  response.status(status).json({ status, detail });
}
