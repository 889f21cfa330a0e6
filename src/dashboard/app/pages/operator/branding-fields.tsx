import { ColorInput, TextInput } from "@mantine/core";

import { fieldError } from "../../ui/explain.ts";
import type { Branding } from "./branding.ts";

/** The look of a company. */
export function BrandingFields({
  value,
  onChange,
  error,
}: {
  readonly value: Branding;
  readonly onChange: (value: Branding) => void;
  readonly error: unknown;
}) {
  return (
    <>
      <ColorInput
        label="Colour"
        description="Of buttons and links; the platform's blue if left out."
        placeholder="#1f6feb"
        format="hex"
        withEyeDropper={false}
        value={value.primaryColor}
        error={fieldError(error, "primary_color")}
        onChange={(primaryColor) => onChange({ ...value, primaryColor })}
      />
      <TextInput
        label="Logo"
        description="An https address; shown in the header."
        type="url"
        placeholder="https://"
        value={value.logoUrl}
        error={fieldError(error, "logo_url")}
        onChange={(event) => onChange({ ...value, logoUrl: event.currentTarget.value })}
      />
    </>
  );
}
