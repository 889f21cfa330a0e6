import { Switch, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { useApi } from "../../session.tsx";
import { fieldError } from "../../ui/explain.ts";
import { DialogForm, FormDialog } from "../../ui/form.tsx";
import { notify } from "../../ui/notify.ts";
import { BrandingFields } from "./branding-fields.tsx";
import { brandingBody, NO_BRANDING } from "./branding.ts";

interface Props {
  readonly opened: boolean;
  readonly onClose: () => void;
}

export function PartnerForm({ opened, onClose }: Props) {
  return (
    <FormDialog opened={opened} onClose={onClose} title="New partner">
      <Fields onClose={onClose} />
    </FormDialog>
  );
}

const SHOWN = [
  "name",
  "primary_color",
  "logo_url",
  "white_label.brand_name",
  "white_label.domain",
] as const;

function Fields({ onClose }: { readonly onClose: () => void }) {
  const api = useApi();
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [branding, setBranding] = useState(NO_BRANDING);
  const [isWhite, setWhite] = useState(false);
  const [brandName, setBrandName] = useState("");
  const [domain, setDomain] = useState("");
  const whiteLabel = { brand_name: brandName.trim(), domain: domain.trim().toLowerCase() };
  return (
    <DialogForm
      action="Create partner"
      fields={SHOWN}
      onCancel={onClose}
      send={() =>
        api.call("POST", "/admin/partners", {
          body: {
            name: name.trim(),
            ...brandingBody(branding),
            ...(isWhite && { white_label: whiteLabel }),
          },
        })
      }
      onDone={(partner) => {
        void queries.invalidateQueries({ queryKey: ["partners"] });
        notify.done(`${partner.name} is created. Give it an owner next, in Users.`);
        onClose();
      }}
    >
      {(error) => (
        <>
          <TextInput
            label="Name"
            required
            data-autofocus
            value={name}
            error={fieldError(error, "name")}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <BrandingFields value={branding} onChange={setBranding} error={error} />
          <Switch
            label="White label"
            description="The partner's people and accounts see its own name instead of ours."
            checked={isWhite}
            onChange={(event) => setWhite(event.currentTarget.checked)}
          />
          {isWhite && (
            <>
              <TextInput
                label="Brand name"
                required
                value={brandName}
                error={fieldError(error, "white_label.brand_name")}
                onChange={(event) => setBrandName(event.currentTarget.value)}
              />
              <TextInput
                label="Domain"
                description="Such as reviews.partner.example; no two partners share one."
                required
                value={domain}
                error={fieldError(error, "white_label.domain")}
                onChange={(event) => setDomain(event.currentTarget.value)}
              />
            </>
          )}
        </>
      )}
    </DialogForm>
  );
}
