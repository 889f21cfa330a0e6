import { ChoiceFilter } from "../../ui/filters.tsx";

interface ActiveFilterProps {
  /** The word of the address. */
  readonly value: string | undefined;
  readonly onChange: (active: string | undefined) => void;
}

export function ActiveFilter({ value, onChange }: ActiveFilterProps) {
  return (
    <ChoiceFilter
      label="State"
      any="Active or inactive"
      choices={[
        ["true", "Active"],
        ["false", "Inactive"],
      ]}
      value={value}
      onChange={onChange}
    />
  );
}

/** Answers the part of the API's query for this filter. */
export function activeQuery(value: string | undefined): { readonly is_active?: "true" | "false" } {
  const isActive = (["true", "false"] as const).find((one) => one === value);
  return isActive === undefined ? {} : { is_active: isActive };
}
