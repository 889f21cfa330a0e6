import { ColorInput, TextInput } from "@mantine/core";

import type { FormState } from "../../ui/use-form.ts";
import type { CompanyDraft } from "./company-drafts.ts";

import "@mantine/core/styles/ColorSwatch.css";
import "@mantine/core/styles/ColorPicker.css";
import "@mantine/core/styles/ColorInput.css";

export function NameField({ form }: { readonly form: FormState<CompanyDraft> }) {
  return <TextInput label="Name" required data-autofocus {...form.text("name")} />;
}

/** The fields for the look of a company. */
export function BrandingFields({ form }: { readonly form: FormState<CompanyDraft> }) {
  return (
    <>
      <ColorInput
        label="Colour"
        description="Of buttons and links; the platform's blue if left out."
        placeholder="#1f6feb"
        format="hex"
        withEyeDropper={false}
        value={form.draft.primaryColor}
        error={form.errorOf("primaryColor")}
        onChange={(primaryColor) => form.edit({ primaryColor })}
      />
      <TextInput
        label="Logo"
        description="An https address; shown in the header."
        type="url"
        placeholder="https://"
        {...form.text("logoUrl")}
      />
    </>
  );
}
