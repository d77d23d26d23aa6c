// Text imports that Bun embeds: migrations.
declare module "*.sql" {
  const text: string;
  export default text;
}
