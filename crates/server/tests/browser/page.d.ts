// What tests put on the page's window. What is found by a selector is of the kind that the test knows it to be.

interface Window { [name: string]: any }
interface PerformanceEntry { responseEnd: number }
interface ParentNode {
  querySelector(selectors: string): any;
  querySelectorAll(selectors: string): NodeListOf<any>;
}
