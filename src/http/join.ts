import {
  type AnyElysia,
  type DefinitionBase,
  Elysia,
  type EphemeralType,
  type MetadataBase,
  type RouteBase,
  type SingletonBase,
} from "elysia";

/** An instance of Elysia of which only the routes are known. */
type Routes<Known extends RouteBase> = Elysia<
  "",
  SingletonBase,
  DefinitionBase,
  MetadataBase,
  Known,
  EphemeralType,
  EphemeralType
>;

type Each<Union> = Union extends unknown ? (one: Union) => void : never;
type All<Union> = Each<Union> extends (one: infer Whole extends RouteBase) => void ? Whole : never;

/**
 * Joins groups of routes into one. The typed client only needs the types of the routes, and Elysia's own `use` merges
 * those of decorators, macros and hooks too, for each group again.
 */
export function join<const Groups extends readonly AnyElysia[]>(
  ...groups: Groups
): Routes<All<Groups[number]["~Routes"]>> {
  const joined: AnyElysia = new Elysia();
  for (const group of groups) joined.use(group);
  return joined as Routes<All<Groups[number]["~Routes"]>>;
}
