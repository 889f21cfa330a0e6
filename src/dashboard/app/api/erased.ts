export { isErased } from "../../../tenants/erasure-rules.ts";
