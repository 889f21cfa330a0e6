import { QueryClientProvider } from "@tanstack/react-query";
import { setNonce } from "get-nonce";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import "./main.css";
import { App } from "./app.tsx";
import { followNewLinks, consumePortalLink } from "./session/links.ts";
import { SessionProvider } from "./session/session.tsx";
import { queryClient } from "./session/query-client.ts";
import { BrandTheme, styleNonce } from "./shell/theme.tsx";

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no element #root.");
// Passes on the nonce of the page, because Mantine locks scrolling behind a dialog with a style element. The content
// security policy accepts a style element only with the nonce.
setNonce(styleNonce());
const portal = consumePortalLink();
const shown = createRoot(root);
if (portal === undefined)
  shown.render(
    <StrictMode>
      <QueryClientProvider client={queryClient}>
        <SessionProvider>
          <BrandTheme>
            <App />
          </BrandTheme>
        </SessionProvider>
      </QueryClientProvider>
    </StrictMode>,
  );
else {
  followNewLinks();
  // Loads the portal as a separate chunk, so that dashboard users do not download the portal's code.
  void import("./portal.tsx").then(({ Portal }) =>
    shown.render(
      <StrictMode>
        <Portal link={portal} />
      </StrictMode>,
    ),
  );
}
