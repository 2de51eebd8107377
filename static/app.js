// What scripts add to pages that work without them.
import { startChoice } from "./choice.js";
import { startConversation } from "./conversation.js";
import { copyOnClick, savePng } from "./copying.js";
import { letScroll, printOnClick, takeShortcuts } from "./keys.js";
import { startLibrary } from "./library.js";
import { startPanel } from "./panel.js";
import { dropMenus, showLocalTimes } from "./parts.js";
import { startPeek } from "./peek.js";
import { showSheets } from "./sheet.js";
import { startUploads } from "./uploads.js";

startPanel();
showSheets(document);
startPeek();
startChoice();
startConversation();
startLibrary();
startUploads();
copyOnClick();
savePng();
takeShortcuts();
printOnClick();
letScroll(document);
dropMenus();
showLocalTimes(document);
