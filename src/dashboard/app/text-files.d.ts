declare module "*.go" {
  const text: string;
  export default text;
}
declare module "*.java" {
  const text: string;
  export default text;
}
declare module "*.php" {
  const text: string;
  export default text;
}
declare module "*.py" {
  const text: string;
  export default text;
}
declare module "*.rb" {
  const text: string;
  export default text;
}
declare module "*.sh" {
  const text: string;
  export default text;
}
declare module "*.css" {}
