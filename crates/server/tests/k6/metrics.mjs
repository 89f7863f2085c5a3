// Stands in for k6/metrics.
export const metrics = {
  grpc_req_duration: { values: { avg: 1, med: 1, "p(90)": 1, "p(99)": 1, max: 1 } },
};

export class Counter {
  constructor(name) {
    this.values = { count: 0 };
    metrics[name] = this;
  }

  add(number) {
    this.values.count += number;
  }
}
