// Files that are imported as text, `with { type: "text" }`.
declare module "*.css" {
  const text: string;
  export default text;
}
declare module "*.svg" {
  const text: string;
  export default text;
}
declare module "*.min.js" {
  const text: string;
  export default text;
}
declare module "*.browser.js" {
  const text: string;
  export default text;
}
