import {
  type AnyElysia,
  type DefinitionBase,
  Elysia,
  type EphemeralType,
  type MetadataBase,
  type RouteBase,
  type SingletonBase,
} from "elysia";

/** An Elysia instance whose type contains only the routes. */
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
 * Joins groups of routes into one. Elysia's own `use` would also merge the types of decorators, macros and hooks, again
 * for each group; the typed client needs only the types of the routes.
 */
export function join<const Groups extends readonly AnyElysia[]>(
  ...groups: Groups
): Routes<All<Groups[number]["~Routes"]>> {
  const joined: AnyElysia = new Elysia();
  for (const group of groups) joined.use(group);
  return joined as Routes<All<Groups[number]["~Routes"]>>;
}
