/* Regard, the lectures. Sources: web/lectures/. */
"use strict";(()=>{function c(e,t={},...n){let o=document.createElement(e);return N(o,t),ie(o,n),o}function N(e,t){for(let[n,o]of Object.entries(t))typeof o=="function"?e.addEventListener(n.slice(2),o):o==null||o===!1?e.removeAttribute(n):e.setAttribute(n,o===!0?"":String(o))}function M(e,...t){let n=document.activeElement,o=e.contains(n);e.replaceChildren(),ie(e,t),o&&e.contains(n)&&n.focus({preventScroll:!0})}function ie(e,t){for(let n of t)n==null||n===!1||e.append(typeof n=="string"?document.createTextNode(n):n)}function P(e){let t=Math.max(...e),n=e.map(r=>Math.exp(r-t)),o=n.reduce((r,s)=>r+s,0);return n.map(r=>r/o)}function H(e){return e.reduce((t,n)=>n>0?t-n*Math.log2(n):t,0)}var T=e=>e[0].map((t,n)=>e.map(o=>o[n])),C=(e,t)=>e.map(n=>t[0].map((o,r)=>n.reduce((s,a,i)=>s+a*t[i][r],0))),A=(e,t)=>e.map(n=>n.map(o=>o*t)),B=e=>e.map(P),R=e=>Math.hypot(...e.flat());function L(e,t,n=[],o=[]){let r=Math.max(...t.flat().map(Math.abs),1e-9),s=i=>{let l=Math.round(45*Math.abs(i)/r),m=`background: color-mix(in srgb, var(${i<0?"--minus":"--hue"}) ${l}%, var(--page))`;return c("td",{class:"number",style:m},i.toFixed(2))},a=o.map(i=>c("th",{scope:"col",class:"number"},i));return c("div",{class:"table",tabindex:0,role:"group","aria-label":e},c("table",{},c("caption",{},e),o.length>0&&c("thead",{},c("tr",{},n.length>0&&c("td"),...a)),c("tbody",{},...t.map((i,l)=>c("tr",{},n[l]&&c("th",{scope:"row"},n[l]),...i.map(s))))))}function gt({x:e,query:t,key:n,value:o,output:r}){let s=t.map((i,l)=>{let[m,p,h]=[C(e,t[l]),C(e,n[l]),C(e,o[l])],u=A(C(m,T(p)),1/Math.sqrt(p[0].length)),d=B(u);return{q:m,k:p,v:h,scores:u,weights:d,h:C(d,h)}}),a=e.map((i,l)=>s.flatMap(({h:m})=>m[l]));return{...s[0],all:a,y:C(a,r)}}function le(e,t){let n=gt(t);e.choice("line","Line",t.lines.map(([m,p])=>[m,p]),"scores");let o=c("div"),r=m=>{let p=e.picture.parentElement.querySelector('[name="line"]');p.value=m,p.dispatchEvent(new Event("change"))},s=t.lines.map(([m,p,h,u])=>c("tr",{onpointerenter:()=>r(m)},c("td",{},p),c("td",{},c("code",{},h)),c("td",{},u.join(" × ")))),a=["Pseudo-code","Regard","Shape"].map(m=>c("th",{scope:"col"},m)),i="Pseudo-code and Regard's code",l=c("table",{},c("thead",{},c("tr",{},...a)),c("tbody",{},...s));M(e.picture,c("div",{class:"table",tabindex:0,role:"group","aria-label":i},l),o),e.run(()=>{let m=t.lines.findIndex(([u])=>u===e.string("line"));s.forEach((u,d)=>u.style.background=d===m?"var(--raised)":"");let[p,h]=t.lines[m];M(o,L(h,n[p])),e.show("rows","Rows",n[p].length),e.show("columns","Columns",n[p][0].length),e.show("norm","Root of the sum of squares",R(n[p]))})}function y(e,t={},...n){let o=document.createElementNS("http://www.w3.org/2000/svg",e);return N(o,t),o.append(...n),o}function bt(e,t){return[e*e,t*t,e*t]}function ce(e,{source:t,target:n,flops:o}){e.slider("source","N, tokens of the passage",{min:10,max:4e3,step:10,value:t}),e.slider("target","M, tokens of the summary",{min:10,max:4e3,step:10,value:n}),e.run(()=>{let[r,s]=[e.number("source"),e.number("target")],a=bt(r,s),i=a[0]+a[1]+a[2],l=r+s,p=[["N²","--hue",0,0,r,r],["M²","--accent",r,r,s,s],["N M","--minus",0,r,r,s]].flatMap(([g,f,v,$,b,x])=>{let w=y("rect",{x:v,y:$,width:b,height:x,style:`fill: var(${f}); stroke: var(--page)`});if(Math.min(b,x)<l/12)return[w];let F={x:v+b/2,y:$+x/2,"text-anchor":"middle","font-size":l/20};return[w,y("text",{...F,"dominant-baseline":"central",style:"fill: var(--page)"},g)]}),h=`Square of N + M tokens: the encoder's N², the decoder's M² and N M between them are ${i} pairs`;M(e.picture,y("svg",{viewBox:`0 0 ${l} ${l}`,class:"areas",role:"img","aria-label":h},...p));let u=["source_source","target_target","target_source"],d=["Encoder self-attention, N²","Decoder self-attention, M²","Cross-attention, N M"];a.forEach((g,f)=>e.show(u[f],`${d[f]}: GFLOP`,g*o/1e9)),e.show("cross_share","Share of cross-attention",a[2]/i,`${(100*a[2]/i).toFixed(1)}%`)})}var[K,G,Q]=[132,44,30];function ft({words:e,probabilities:t},n,o){let r=[{depth:0,place:0,token:e.length-1,total:0,status:"open"}],s=[r],a=-1/0;for(;s.length<=o&&r.length&&a<r[0].total;){let i=s.length,l=r.flatMap(m=>t[m.token].map((p,h)=>({parent:m,depth:i,place:0,token:h,total:m.total+Math.log(p),status:"dropped"}))).filter(({total:m})=>m>-1/0).sort((m,p)=>p.total-m.total).slice(0,2*n);r=i===o?[]:l.filter(({token:m})=>m!==0).slice(0,n);for(let m of r)m.status="open";l.forEach((m,p)=>{m.place=p,p<n&&(m.token===0||i===o)&&(m.status="finished"),m.status==="finished"&&(a=Math.max(a,m.total))}),s.push(l)}return s}function U(e){return e.parent?[...U(e.parent),e]:[]}function me(e,{tables:t,table:n,k:o,steps:r}){e.choice("table","Table",Object.entries(t).map(([s,{label:a}])=>[s,a]),n),e.slider("k","k: open hypotheses",{min:1,max:4,step:1,value:o}),e.slider("step","Step",{min:0,max:r,step:1,value:1}),e.run(()=>{let{words:s,probabilities:a}=t[e.string("table")],[i,l]=[e.number("k"),e.number("step")],m=ft({label:"",words:s,probabilities:a},i,r),p=m.slice(0,l+1),h=p.flat().filter(({status:b})=>b==="finished"),u=h.reduce((b,x)=>b&&b.total>=x.total?b:x,void 0),d=l>=m.length-1,g=(p[l]??[]).filter(({status:b})=>b==="open"),f=b=>U(b).map(({token:x})=>s[x]).join(" "),v=d&&u?U(u):[],$=d?`The search is over after step ${m.length-1}. Backtracking from the best finished hypothesis: ${u&&f(u)}.`:`After step ${l}, open: ${g.map(b=>f(b)||"<START>").join(", ")}.`;M(e.picture,c("div",{class:"table",tabindex:0,role:"group","aria-label":"Tree of hypotheses"},xt(p,s,v)),c("p",{class:"small",role:"status"},$)),e.show("kept","Open hypotheses after this step",g.length),e.show("best_open","log p of the best of them",g[0]?.total??-1/0),e.show("finished","Finished so far",h.length),e.show("best_finished","log p of the best finished",u?.total??-1/0)})}function xt(e,t,n){let[o,r]=[K*e.length,G*Math.max(...e.map(({length:a})=>a))+Q],s=y("svg",{width:o,height:r,viewBox:`0 0 ${o} ${r}`,class:"tree","aria-hidden":"true"});for(let a of e.flat()){let[i,l]=[K*a.depth+4,G*a.place+Q],m=n.includes(a)?"best":a.status;if(a.parent){let[p,h]=[i-K+84,G*a.parent.place+Q];s.append(y("path",{d:`M${p},${h}C${p+24},${h} ${i-24},${l} ${i},${l}`,class:m}))}s.append(y("rect",{x:i,y:l-19,width:84,height:38,rx:6,class:m}),y("text",{x:i+42,y:l-3},t[a.token]),y("text",{x:i+42,y:l+13},a.parent?a.total.toFixed(2):"0"))}return s}var V=class{picture=c("div",{class:"picture"});inputs=c("div",{class:"inputs"});outputs=c("dl",{class:"outputs"});readers=new Map;shown=new Map;update=()=>{};slider(t,n,o,r=String){let s=c("input",{type:"range",name:t,...o,value:o.value}),a=c("output",{},r(o.value));s.addEventListener("input",()=>{a.textContent=r(Number(s.value)),this.update()}),this.inputs.append(c("label",{},c("span",{},n),s,a)),this.readers.set(t,()=>s.value)}choice(t,n,o,r){let s=c("select",{name:t,onchange:()=>this.update()});for(let[a,i]of o)s.append(c("option",{value:a},i));s.value=r,this.inputs.append(c("label",{},c("span",{},n),s)),this.readers.set(t,()=>s.value)}text(t,n,o){let r=c("input",{type:"text",name:t,value:o,maxlength:200,oninput:()=>this.update()});this.inputs.append(c("label",{},c("span",{},n),r)),this.readers.set(t,()=>r.value)}button(t,n,o){let r=()=>{o(),this.update()},s=this.inputs.lastElementChild,a=s?.className==="buttons"?s:c("div",{class:"buttons"});a.append(c("button",{type:"button",name:t,onclick:r},n)),this.inputs.append(a)}number(t){return Number(this.string(t))}string(t){return this.readers.get(t)()}show(t,n,o,r=E(o)){let s=this.shown.get(t);s||(s=c("dd",{"data-output":t}),this.outputs.append(c("div",{},c("dt",{},n),s)),this.shown.set(t,s)),s.dataset.value=String(o),s.textContent=r}run(t){this.update=t,t()}mount(t){M(t,this.picture,this.inputs,this.outputs)}};function E(e){return Number.isFinite(e)?e!==0&&(Math.abs(e)>=1e6||Math.abs(e)<1e-4)?e.toExponential(3).replace(/\.?0+e/,"e"):String(Number(e.toPrecision(4))):Number.isNaN(e)?"NaN":e>0?"∞":"-∞"}function k(e,t,n,o=n){let r=t.map((s,a)=>{let[i,l]=[n[a],o[a]],m=Number.isFinite(l)?Math.min(1,Math.max(0,l)):0;return c("div",{class:"bar-row"},c("span",{},s),c("span",{class:"bar-track"},c("span",{class:"bar",style:`width: ${(100*m).toFixed(1)}%`})),c("span",{class:"bar-value"},E(i)))});M(e,c("div",{class:"bars"},...r))}function X(e,t,n){if(!n)return e/Math.max(...t);let o=t.map(Math.log10),r=Math.min(...o)-.5;return(Math.log10(e)-r)/(Math.max(...o)-r)}function pe(e,{label:t,points:n,names:o,values:r,start:s,is_log:a}){let i=n.length-1;e.slider("point",`${t}: ${n[0]} to ${n[i]}`,{min:0,max:i,step:1,value:s},m=>String(n[m]));let l=r.flat();e.run(()=>{let m=e.number("point"),p=r.map(u=>u[m]),h=c("div");k(h,o,p,p.map(u=>X(u,l,!!a))),e.picture.replaceChildren(c("p",{class:"small"},`${t}: ${n[m]}${a?" (bars: logarithms)":""}`),h),p.forEach((u,d)=>e.show(`value_${d}`,o[d],u))})}function wt(e){let{mean:t,variance:n}=ue(e);return e.map(o=>(o-t)/Math.sqrt(n+1e-5))}function ue(e){let t=e.reduce((n,o)=>n+o,0)/e.length;return{mean:t,variance:e.reduce((n,o)=>n+(o-t)**2,0)/e.length}}function de(e,t){let{x:n,sublayer:o,variants:r,names:s,gradients:a,similarities:i}=t;e.choice("variant","The block",r.map((l,m)=>[l,s[m]]),r[0]),e.slider("depth","Layers",{min:1,max:a[0].length,step:1,value:6}),e.run(()=>{let l=r.indexOf(e.string("variant")),[m,p]=[...r[l]].map(w=>w==="1"),h=o.map((w,F)=>m?n[F]+w:w),u=p?wt(h):h,d=e.number("depth")-1,g=a.map(w=>w[d]),f=c("div"),v=g.map(w=>X(w,a.flat(),!0));k(f,s.map((w,F)=>F===l?`▸ ${w}`:w),g,v);let $=[["x",n],["Sublayer(x)",o],...m?[["x + Sublayer(x)",h]]:[],...p?[["after the norm",u]]:[]];e.picture.replaceChildren(yt($),c("p",{class:"small"},`Gradient at the input of ${d+1} layers (bars: logarithms)`),f);let{mean:b,variance:x}=ue(u);e.show("mean","Output: mean",b,E(Number(b.toFixed(4)))),e.show("deviation","Output: standard deviation",Math.sqrt(x)),e.show("gradient","Gradient at the input",g[l]),e.show("similarity","Mean cosine of two tokens' outputs",i[l][d])})}function yt(e){let t=n=>n.slice(0,6).map(o=>c("td",{class:"number"},E(Number(o.toFixed(2)))));return c("div",{class:"table",tabindex:0,role:"group","aria-label":"One token's numbers"},c("table",{},c("caption",{},"The first six numbers of one token in the first block"),c("tbody",{},...e.map(([n,o])=>c("tr",{},c("th",{scope:"row"},n),...t(o))))))}var vt=(e,t,n)=>Array.from({length:e},(o,r)=>r===0?n:t);function he(e,{tokens:t,value:n,other:o}){e.slider("tokens","Tokens",{min:1,max:400,step:1,value:t}),e.slider("first","Value of the first token",{min:-2,max:2,step:.1,value:o}),e.slider("value","Value of every other token",{min:-2,max:2,step:.1,value:n}),e.run(()=>{let r=e.number("tokens"),s=vt(r,e.number("value"),e.number("first")),a=s.slice(1).reduce((m,p)=>m*p,1),i=s.reduce((m,p)=>m+p/r,0),l=a*s[0];k(e.picture,["|sum|","|product|"],[Math.abs(i),Math.abs(l)]),e.show("sum","Sum, each weight 1/n",i),e.show("product","Product",l),e.show("sum_slope","d sum / d first",1/r),e.show("product_slope","d product / d first",a)})}function Mt(e,t){return{projections:8*e*t*t,attention:4*e*e*t,feedforward:4*e*t*4*t}}function ge(e,{widths:t,d_model:n,tokens:o,most:r}){let s=t.map(a=>[String(a),`D = ${a}`]);e.slider("n","N tokens",{min:r/128,max:r,step:r/128,value:o}),e.choice("d","Width",s,String(n)),e.run(()=>{let[a,i]=[e.number("n"),e.number("d")],{projections:l,attention:m,feedforward:p}=Mt(a,i),h=l+m+p,u=["Projections, N D²","Attention, N² D","Feed-forward, N D²"];k(e.picture,u,[l/h,m/h,p/h]);let d=(g,f,v)=>e.show(g,f,v,`${(v/1e9).toPrecision(3)} GFLOPs`);d("projections","Projections",l),d("attention","Scores and weighted sum",m),d("feedforward","Feed-forward",p),e.show("share","Share of attention",m/h,`${(100*m/h).toFixed(1)} %`),e.show("ratio","N / D",a/i)})}var be=(e,t,n)=>[e**n*Math.cos(t*n),e**n*Math.sin(t*n)];function fe(e,{size:t,angle:n,steps:o}){e.slider("size","Size of the eigenvalues",{min:.98,max:1.02,step:.001,value:t}),e.slider("angle","Angle of the eigenvalues",{min:0,max:3.14,step:.01,value:n}),e.slider("t","Position t",{min:0,max:o,step:1,value:100}),e.run(()=>{let[r,s,a]=[e.number("size"),e.number("angle"),e.number("t")],i=Array.from({length:a+1},(h,u)=>be(r,s,u));M(e.picture,kt(i));let[l,m]=be(r,s,a);e.show("x","First element of P(t)",l),e.show("y","Second element",m),e.show("length","Length of P(t)",r**a);let p=Math.min(...i.slice(1).map(([h,u])=>Math.hypot(h-1,u)));e.show("return","Smallest distance of a later position to P(0)",p)})}function kt(e){let t=e.map(([r,s],a)=>{let i=`fill: var(${a===e.length-1?"--accent":"--hue"}); opacity: ${a===e.length-1?1:.5}`;return y("circle",{cx:100*r,cy:-100*s,r:a===e.length-1?6:3,style:i})}),n=y("circle",{r:100,style:"fill: none; stroke: var(--rule)"});return y("svg",{...{viewBox:"-170 -125 340 250",width:"100%",style:"max-height: 300px"},role:"img","aria-label":"Positions 0 to t in the plane, and the unit circle"},n,...t)}function xe(e,{query:t,keys:n,useful:o}){e.slider("size","Size of the other features",{min:0,max:4,step:.1,value:1}),e.choice("projection","Scores",[["none","x·x, without parameters"],["first","with W that keeps the useful features"]],"none"),e.run(()=>{let r=e.string("projection")==="first"?0:e.number("size"),s=i=>i.map((l,m)=>m<o?l:r*l),a=P(C([s(t)],T(n.map(s)))[0]);k(e.picture,n.map((i,l)=>l?`key ${l+1}`:"the right key"),a),e.show("right","Weight of the right key",a[0])})}var z=(e,t)=>e.reduce((n,o,r)=>n+o*t[r],0),J=(e,t)=>e.map(n=>z(n,t));function $t(e,t,n,o){if(e==="dot")return z(t,n);if(e==="scaled_dot")return z(t,n)/Math.sqrt(n.length);if(e==="general")return z(t,J(o.general,n));let[r,s]=[J(o.query,t),J(o.key,n)],a=r.map((i,l)=>Math.tanh(i+s[l]));return z(o.vector,a)}function we(e,t){e.choice("kind","Score",[["dot","dot: q·k"],["scaled_dot","scaled dot: q·k / √d"],["general","general: q·W k"],["concat","concat: v·tanh(W [q; k])"],["additive","additive: v·tanh(W₁ q + W₂ k)"]],"dot"),e.slider("angle","Angle of the query in degrees",{min:0,max:360,step:5,value:30}),e.slider("size","Length of the query",{min:0,max:10,step:.5,value:1}),e.run(()=>{let[n,o]=[e.number("angle")*Math.PI/180,e.number("size")],r=[o*Math.cos(n),o*Math.sin(n)],s=t.keys.map(i=>$t(e.string("kind"),r,i,t)),a=P(s);k(e.picture,t.keys.map(i=>`key (${i.join(", ")})`),a),s.forEach((i,l)=>e.show(`score_${l}`,`Score of key ${l+1}`,i)),a.forEach((i,l)=>e.show(`weight_${l}`,`Weight of key ${l+1}`,i))})}function Pt(e){return e.indexOf(Math.max(...e))}function ye(e,{words:t,probabilities:n,start:o,end:r,most:s}){let a=[],i=()=>a.at(-1)??o,l=()=>i()!==r&&a.length<s,m=p=>{l()&&a.push(p)};e.button("next","Add the likeliest token",()=>m(Pt(n[i()]))),t.forEach((p,h)=>{h!==o&&e.button(`add_${h}`,`Add ${p}`,()=>m(h))}),e.button("restart","Start again",()=>a=[]),e.run(()=>{let p=[o,...a],h=a.reduce((g,f,v)=>g*n[p[v]][f],1),u=c("div");l()&&k(u,t,n[i()]);let d=l()?`Next token after ${t[i()]}:`:i()===r?"Finished.":"The limit is reached.";e.picture.replaceChildren(c("p",{},c("strong",{},p.map(g=>t[g]).join(" "))),c("p",{class:"small",role:"status"},d),u),e.show("tokens","Tokens",a.length),e.show("logprob","log p",Math.log(h)),e.show("p","p",h),e.show("finished","Finished",+(i()===r),i()===r?"yes":"no")})}function ve(e,{names:t,perplexities:n}){let o=t.length-1;e.slider("model","Model, oldest idea first",{min:0,max:o,step:1,value:o});let r=Math.max(...n),s=i=>12+76*i/o,a=i=>42-32*i/r;e.run(()=>{let i=e.number("model"),l=n.map((d,g)=>`${s(g)},${a(d)}`).join(" "),m=n.flatMap((d,g)=>[y("circle",{cx:s(g),cy:a(d),r:g===i?1.6:.9,style:"fill: var(--hue)"}),y("text",{x:s(g),y:a(d)-3},d.toFixed(1)),y("text",{x:s(g),y:47},t[g])]),p=y("polyline",{points:l,style:"stroke: var(--hue)"}),h=`Perplexities: ${t.map((d,g)=>`${d} ${n[g]}`).join(", ")}`;M(e.picture,y("svg",{viewBox:"0 0 100 50",role:"img","aria-label":h,class:"chart"},p,...m));let u=n[i];e.show("perplexity",`${t[i]}: as unsure as among so many equally likely words`,u),e.show("bits","Bits per word",Math.log2(u))})}var Ft=(e,t,n)=>(e==="gnmt"?(5+t)/6:t)**n;function Me(e,{hypotheses:t,alpha:n}){e.slider("alpha","α",{min:0,max:3,step:.05,value:n}),e.choice("kind","Divide by",[["power","|y|^α"],["gnmt","((5 + |y|) / 6)^α"]],"power"),e.run(()=>{let o=t.map(({length:a,logprob:i})=>i/Ft(e.string("kind"),a,e.number("alpha"))),r=t.map((a,i)=>i).sort((a,i)=>o[i]-o[a]),s=a=>{let{text:i,length:l,logprob:m}=t[a];return[i,String(l),E(m),E(o[a])]};M(e.picture,c("div",{class:"table",tabindex:0,role:"group","aria-label":"Finished hypotheses, best first"},c("table",{},c("thead",{},c("tr",{},...["hypothesis","|y|","log p","score"].map(a=>c("th",{scope:"col"},a)))),c("tbody",{},...r.map(a=>c("tr",{},...s(a).map((i,l)=>c("td",{class:l?"number":null},i)))))))),e.show("best","Best hypothesis",r[0],t[r[0]].text),e.show("score","Its score",o[r[0]])})}function Ct(e,t,n){let o=P(e.map(r=>r/n));return{weights:o,value:o.reduce((r,s,a)=>r+s*t[a],0)}}function ke(e,t){let{queries:n,keys:o,values:r,scores:s,temperature:a,unit:i,duplicate:l}=t;e.choice("query","Query",n.map((p,h)=>[String(h),p]),"0");let m={min:-2,max:2,step:.1,value:Math.log10(a)};e.slider("exponent","Temperature, from 0.01 (hard) to 100 (mean)",m,p=>String(St(p))),l&&e.choice("copies",`Key ${o[l.key]}`,[["1","once"],["2",`twice, with the values ${r[l.key]} and ${l.value}`]],"1"),e.run(()=>{let p=s[e.number("query")],h=l&&e.string("copies")==="2",u=h?[...p,p[l.key]]:p,d=h?[...r,l.value]:r,g=h?[...o,`${o[l.key]} (copy)`]:o,{weights:f,value:v}=Ct(u,d,10**e.number("exponent"));k(e.picture,g.map(($,b)=>`${$} → ${d[b]}`),f),e.show("value",`Soft look-up: weighted sum of the ${i}`,v),e.show("hard","Hard look-up: first best key",d[u.indexOf(Math.max(...u))]),e.show("mean","Mean of all",d.reduce(($,b)=>$+b,0)/d.length),e.show("largest","Largest weight",Math.max(...f))})}function St(e){return Number((10**e).toPrecision(2))}function _t(e,t,n){let o=r=>n==="add"?-1/0:r*(-1/0);return e.map((r,s)=>r.map((a,i)=>n!=="none"&&t[s][i]?o(a):a))}function $e(e,{scores:t,mode:n,view:o,row:r,column:s}){let a=t.map((m,p)=>m.map((h,u)=>u>p)),i=t.length-1,l=(m,p)=>a[m][p]=!a[m][p];e.choice("mode","The mask is",[["none","absent"],["add","added: 0 or -∞"],["multiply","multiplied: 1 or -∞ (the slide)"]],n),e.choice("view","Table",[["scores","scores after the mask"],["weights","weights: softmax of each row"]],o),e.slider("row","Row: query",{min:0,max:i,step:1,value:r}),e.slider("column","Column: key",{min:0,max:i,step:1,value:s}),e.button("toggle","Hide or show this cell",()=>l(e.number("row"),e.number("column"))),e.run(function m(){let p=_t(t,a,e.string("mode")),h=p.map(P),[u,d]=[e.number("row"),e.number("column")],g=e.string("view")==="weights",v=Et(g?h:p,g?1:3,[u,d],(w,F)=>{l(w,F),m()});M(e.picture,v);let $=P(t[u]);e.show("infinite","Scores of +∞",p.flat().filter(w=>w===1/0).length),e.show("nan_rows","Rows of NaN",h.filter(w=>w.some(Number.isNaN)).length),e.show("weight",`Weight of row ${u}, column ${d}`,h[u][d]);let b=(w,F)=>e.string("mode")==="none"||!a[u][F],x=$.filter(b).reduce((w,F)=>w+F,0);e.show("kept",`Sum of row ${u} if weights were cut after the softmax`,x)})}function Et(e,t,[n,o],r){let s=(i,l,m)=>{let p=Number.isNaN(i)||i===1/0?"accent":i<0?"minus":"hue",h=i===-1/0?0:Number.isFinite(i)?Math.min(60,60*Math.abs(i)/t):45,u=Number.isNaN(i)?"NaN":Number.isFinite(i)?i.toFixed(2):i<0?"-∞":"+∞",d=`background: color-mix(in srgb, var(--${p}) ${h.toFixed(0)}%, var(--page))`;return c("td",{style:d,class:l===n&&m===o&&"chosen",onclick:()=>r(l,m)},u)},a=e.map((i,l)=>c("th",{scope:"col"},String(l)));return c("div",{class:"table cells",tabindex:0,role:"group","aria-label":"Scores or weights"},c("table",{},c("thead",{},c("tr",{},c("td"),...a)),c("tbody",{},...e.map((i,l)=>c("tr",{},c("th",{scope:"row"},String(l)),...i.map((m,p)=>s(m,l,p)))))))}var Tt=e=>e<1e3?e*15/1e3:15+27/Math.log(6.4)*Math.log(e/1e3),Nt=e=>e<15?e*1e3/15:1e3*Math.exp((e-15)*Math.log(6.4)/27);function Lt(e,{rate:t,window:n,bins:o}){let r=Array.from({length:n},(i,l)=>(.5-.5*Math.cos(2*Math.PI*l/n))*Math.sin(2*Math.PI*e*l/t)),s=Array.from({length:n/2+1},(i,l)=>{let m=2*Math.PI*l/n,p=r.reduce((u,d,g)=>u+d*Math.cos(m*g),0),h=r.reduce((u,d,g)=>u+d*Math.sin(m*g),0);return p**2+h**2}),a=Array.from({length:o+2},(i,l)=>Nt(Tt(t/2)*l/(o+1)));return Array.from({length:o},(i,l)=>{let[m,p,h]=[a[l],a[l+1],a[l+2]];return s.reduce((u,d,g)=>{let f=g*t/n,v=Math.min((f-m)/(p-m),(h-f)/(h-p));return u+Math.max(0,v)*2*d/(h-m)},0)})}function Pe(e,t){let{rate:n,hop:o,bins:r,frames:s}=t;e.slider("hertz","Frequency of the tone in hertz",{min:100,max:3800,step:50,value:440}),e.slider("seconds","Seconds",{min:.1,max:5,step:.1,value:1}),e.run(()=>{let a=Lt(e.number("hertz"),t),i=Math.max(...a),l=a.map((d,g)=>{let f=Math.max(0,8+Math.log10(d/i))*12;return y("rect",{x:8*g,y:100-f,width:7,height:f,fill:"var(--hue)"})}),p={viewBox:`0 0 ${8*r} 100`,style:"width: min(100%, 480px)",role:"img","aria-label":"Logarithm of the power in each mel bin, low frequencies on the left"};M(e.picture,y("svg",p,...l));let h=Math.round(e.number("seconds")*n),u=Math.floor(h/o);e.show("loudest","Loudest mel bin",a.indexOf(i)),e.show("samples","Samples",h),e.show("frames","Frames",u),e.show("tokens","Tokens",Math.ceil(u/s))})}var Fe="▁";function qt(e,t,n=0){let o=new Map,r=e&&e.replaceAll(" ",Fe)+Fe;for(let p of r.match(/[^▁]*▁/g)??[])o.set(p,(o.get(p)??0)+1);let s=[...o].map(([p,h])=>({symbols:[...p],count:h})),a=[...new Set(r)].sort((p,h)=>p.codePointAt(0)-h.codePointAt(0)),i=new Map(a.map((p,h)=>[p,h])),l=[],m=[];for(;l.length<t;){let p=new Map;for(let{symbols:f,count:v}of s)for(let $=0;$+1<f.length;$++){let[b,x]=[f[$],f[$+1]],w=p.get(`${b} ${x}`)??{left:b,right:x,count:0};p.set(`${b} ${x}`,{...w,count:w.count+v})}let h=Math.max(...[...p.values()].map(({count:f})=>f));if(h<2)break;let u=[...p.values()].filter(({count:f})=>f===h);u.sort((f,v)=>i.get(f.left)-i.get(v.left)||i.get(f.right)-i.get(v.right));let{left:d,right:g}=u[n%u.length];for(let{symbols:f}of s)for(let v=0;v+1<f.length;v++)f[v]===d&&f[v+1]===g&&f.splice(v,2,d+g);i.has(d+g)||i.set(d+g,i.size),l.push({left:d,right:g,count:h}),m.push(u)}return{words:s,merges:l,ties:m}}function Ce(e,{text:t,steps:n,most:o}){e.text("text","Text",t),e.slider("steps","Merges",{min:0,max:o,step:1,value:n}),e.slider("choice","Which of the tied pairs (0: as Regard)",{min:0,max:5,step:1,value:0}),e.run(()=>{let r=e.string("text"),{words:s,merges:a,ties:i}=qt(r,e.number("steps"),e.number("choice")),l=a.at(-1),m=({left:d,right:g})=>d+g,p=d=>l&&d===m(l)?c("mark",{},d):c("span",{},d);M(e.picture,c("ul",{style:"display: flex; flex-wrap: wrap; gap: 4px 20px; padding: 0; list-style: none","aria-label":"The words as symbols"},...s.map(({symbols:d,count:g})=>c("li",{style:"display: flex; gap: 5px; font-family: monospace"},...d.map(p),g>1&&c("span",{class:"small"},`× ${g}`)))),c("p",{class:"small"},`Merges: ${a.map(d=>`${m(d)} ${d.count}`).join(", ")||"none"}.`),c("p",{class:"small"},`Most frequent before the last merge: ${(i.at(-1)??[]).map(({left:d,right:g})=>`${d} + ${g}`).join(", ")||"-"}.`));let u=s.reduce((d,{symbols:g,count:f})=>d+g.length*f,0);e.show("count","Count of the last merged pair",l?.count??0),e.show("ties","Pairs with this count",i.at(-1)?.length??0),e.show("tokens","Tokens of the text",u),e.show("vocabulary","Different tokens",new Set(s.flatMap(({symbols:d})=>d)).size),e.show("ratio","Characters per token",u?([...r].length+1)/u:0)})}function Se(e,t){let n=new Map;for(let o=t;o<e.length;o++){let r=e.slice(o-t,o),s=n.get(r)??new Map;n.set(r,s.set(e[o],(s.get(e[o])??0)+1))}return n}var _e=e=>[...e.values()].reduce((t,n)=>t+n,0);function At(e){let[t,n,o]=[0,0,0];for(let r of e.values()){let s=_e(r);for(let a of r.values())t-=a*Math.log2(a/s);r.size===1&&(n+=s),o+=s}return{bits:t/o,sure:n/o}}function Bt(e,t,n,o){let r=Se(e,t),[s,a]=[e.slice(0,t),o];for(;s.length<n;){let i=r.get(s.slice(s.length-t));if(!i)break;a=Math.imul(a,1664525)+1013904223>>>0;let l=a/2**32*_e(i);s+=[...i].find(([,m])=>(l-=m)<0)[0]}return s}function Ee(e,{text:t,most:n}){let o=1;e.slider("length","L: characters that the model knows",{min:0,max:n,step:1,value:2}),e.button("draw","Draw again",()=>o++),e.run(()=>{let r=e.number("length"),{bits:s,sure:a}=At(Se(t,r));M(e.picture,c("p",{style:"white-space: pre-wrap"},Bt(t,r,220,o))),e.show("bits","Bits per character of the same text",s),e.show("sure","Places with one possible next character",a,`${(100*a).toFixed(1)} %`)})}function zt(e,t){return t[0].map((n,o)=>e.reduce((r,s,a)=>r+s*t[a][o],0))}function Te(e,{tokens:t,matrix:n}){e.slider("token","Token",{min:0,max:t.length-1,step:1,value:3}),e.run(()=>{let o=e.number("token"),r=zt(t.map((l,m)=>+(m===o)),n),s=t.map((l,m)=>c("tr",{},c("td",{class:"number"},String(+(m===o))),c("th",{scope:"row"},m===o?`▸ ${l}`:l),...n[m].map(p=>c("td",{class:"number"},p.toFixed(4))))),a=["one-hot","token",...n[0].map((l,m)=>`E ${m+1}`)];e.picture.replaceChildren(c("table",{},c("thead",{},c("tr",{},...a.map(l=>c("th",{scope:"col"},l)))),c("tbody",{},...s)));let i=Math.sqrt(r.length);r.forEach((l,m)=>e.show(`x_${m}`,`x ${m+1}, times √D`,l*i,E(l*i)))})}var Ot=[["sinusoidal","sines and cosines"],["index","the index"],["normalized","index / (length - 1)"],["bits","bits of the index"]],Ne=.02,It=1e-4;function Y(e,t,n,o){return Array.from({length:o},(r,s)=>e==="index"?[s]:e==="normalized"?[s/(o-1)]:e==="bits"?Array.from({length:t},(a,i)=>Math.floor(s/2**i)%2):Array.from({length:t},(a,i)=>{let l=s/n**((i-i%2)/t);return i%2?Math.cos(l):Math.sin(l)}))}function qe(e,t){return Math.sqrt(e.reduce((n,o,r)=>n+(o-t[r])**2,0))}function Le(e){let t=1/0;return e.forEach((n,o)=>{for(let r=0;r<o;r++)t=Math.min(t,qe(n,e[r]))}),t}function Ae(e){e.choice("kind","Encoding",Ot,"sinusoidal"),e.slider("d","d: dimensions",{min:2,max:64,step:2,value:32}),e.slider("exponent","base: 10 to this power",{min:0,max:6,step:.5,value:4}),e.slider("length","Length of the sentence",{min:4,max:128,step:1,value:64}),e.run(()=>{let t=e.number("length"),n=h=>Y(e.string("kind"),e.number("d"),10**e.number("exponent"),h),[o,r]=[n(t),n(2*t)],s=[o,r].flatMap(h=>h.slice(1).map((u,d)=>qe(u,h[d])));Ht(e.picture,o);let[a,i]=[Le(o),Le(r)],l=Math.max(...s)-Math.min(...s),m=Math.max(...o.flat().map(Math.abs)),p=[["unique","Unique?","Smallest distance of two positions",a,a>Ne],["steps","Consistent?","Spread of the step to the next position",l,l<It],["longer","Longer?","Smallest distance at twice the length",i,i>Ne],["largest","Bounded?","Largest element",m,m<=1]];for(let[h,u,,,d]of p)e.show(`${h}_light`,u,Number(d),d?"✓ met":"✗ not met");for(let[h,,u,d]of p)e.show(h,u,d)})}function Ht(e,t){let[n,o]=[t.length,t[0].length],r=`Heat map: ${n} positions from left to right, ${o} dimensions from top to bottom`,s=c("canvas",{width:n,height:o,class:"map",role:"img","aria-label":r}),a=Math.max(...t.flat().map(Math.abs)),i=s.getContext("2d");t.forEach((l,m)=>l.forEach((p,h)=>{i.fillStyle=`rgb(${p>0?"33 113 181":"142 42 155"} / ${Math.abs(p)/a})`,i.fillRect(m,h,1,1)})),e.replaceChildren(s,c("p",{class:"small"},`${r}. Blue: positive, purple: negative.`))}var Z=8;function Rt(e){let t=[...e].reduce((n,o,r)=>n+(r+1)*o.codePointAt(0),0);return Array.from({length:Z},(n,o)=>Math.cos((o+1)*t))}function Vt(e){return e.map(t=>{let n=e.map(r=>r.reduce((s,a,i)=>s+a*t[i],0)/Math.sqrt(Z)),o=P(n);return t.map((r,s)=>o.reduce((a,i,l)=>a+i*e[l][s],0))})}function jt(e,t,n){let o=i=>{let l=Y("sinusoidal",Z,1e4,i.length);return Vt(i.map((m,p)=>Rt(m).map((h,u)=>h+(n?l[p][u]:0))))},[r,s]=[o(e),o(t)],a=t.map((i,l)=>({word:i,place:l}));return e.flatMap((i,l)=>{let[m]=a.splice(a.findIndex(p=>p.word===i)>>>0,1);return m?[[i,Math.max(...r[l].map((p,h)=>Math.abs(p-s[m.place][h])))]]:[]})}function Be(e,{sentences:t}){e.text("a","First sentence",t[0]),e.text("b","Second sentence",t[1]),e.choice("positions","Positions",[["none","none: a set of words"],["sinusoidal","sinusoidal, added to the words"]],"none"),e.run(()=>{let[n,o]=["a","b"].map(l=>e.string(l).split(/\s+/).filter(Boolean)),r=jt(n,o,e.string("positions")==="sinusoidal"),[s,a]=[r.map(([l])=>l),r.map(([,l])=>l)],i=a.map(l=>Number(l.toFixed(9)));k(e.picture,s,i),e.show("shared","Words in both sentences",r.length),e.show("largest","Largest difference of the same word's output",Math.max(0,...i))})}function ze(e,{keys:t,last:n,items:o,query:r}){let s=a=>a.map(i=>[i,i]);e.choice("query","Query",s(t),r),e.choice("last","Key of the last row",s(n),n[0]),e.slider("scale","Score of a matching key",{min:0,max:50,step:1,value:3}),e.run(()=>{let a=[...t,e.string("last")],i=a.map(u=>u===e.string("query")?e.number("scale"):0),l=P(i),m=a.map((u,d)=>c("tr",{},c("td",{},u),c("td",{},o[d]),c("td",{class:"number"},String(d)),c("td",{class:"number"},E(i[d])),c("td",{class:"number",style:`background: color-mix(in srgb, var(--hue) ${Math.round(60*l[d])}%, var(--page))`},l[d].toFixed(3)))),p=["key","items","value","score","weight"].map(u=>c("th",{scope:"col"},u));M(e.picture,c("div",{class:"table",tabindex:0,role:"group","aria-label":"Order database"},c("table",{},c("thead",{},c("tr",{},...p)),c("tbody",{},...m)))),e.show("matches","Keys that match",i.filter((u,d)=>a[d]===e.string("query")).length),e.show("weight","Largest weight",Math.max(...l));let h=l.reduce((u,d,g)=>u+d*g,0);e.show("value","Weighted sum of the values",h),e.show("nearest","Nearest item",Math.round(h),o[Math.round(h)])})}function Oe({vectors:e,positions:t},n,o){let r=n.map((s,a)=>e[s].map((i,l)=>i+(o?t[a][l]:0)));return C(B(A(C(r,T(r)),1/Math.sqrt(r[0].length))),r)}function Ie(e,t){let{words:n,orders:o}=t,r=a=>[...a].map(Number),s=a=>r(a).map(i=>n[i]).join(" ");e.choice("order","Order",o.map(a=>[a,s(a)]),o.at(-1)),e.choice("positions","Positions",[["no","none"],["yes","sinusoidal, added"]],"no"),e.run(()=>{let a=e.string("positions")==="yes",i=r(e.string("order")),l=Oe(t,n.map((d,g)=>g),a),m=Oe(t,i,a),p=i.map(d=>n[d]),h=m[0].map((d,g)=>String(g+1));M(e.picture,c("div",{style:"display: flex; flex-wrap: wrap; gap: 8px 32px"},L(`Outputs of “${n.join(" ")}”`,l,n,h),L(`Outputs of “${p.join(" ")}”`,m,p,h)));let u=i.flatMap((d,g)=>m[g].map((f,v)=>Math.abs(f-l[d][v])));e.show("difference","Largest difference between the outputs of the same word",Math.max(...u))})}function Dt(e,t){let n=e.reduce((r,s)=>r+s,0),o=[0,1,2,3,4].map(r=>{let s=new Map,a=t.slice(0,r).reduce((i,l)=>i|8>>l-1,0);return e.forEach((i,l)=>s.set(l&a,(s.get(l&a)??0)+i)),[...s.values()].reduce((i,l)=>l?i-l/n*Math.log2(l/n):i,0)});return o.slice(1).map((r,s)=>r-o[s])}function He(e,{counts:t,orders:n}){e.choice("order","Order of the pixels",n.map(o=>[o,[...o].join(" ")]),n[0]),e.run(()=>{let o=[...e.string("order")].map(Number),r=Dt(t,o),s=a=>`pixel ${o[a]}${a?`, given ${o.slice(0,a).join(" ")}`:""}`;k(e.picture,r.map((a,i)=>s(i)),r),r.forEach((a,i)=>e.show(`bits_${i}`,`Bits of the ${["first","second","third","fourth"][i]}`,a)),e.show("sum","Sum: bits of the image",r.reduce((a,i)=>a+i,0))})}var je=e=>B(C(e,T(e))),Re=e=>C(je(e),e);function De(e,{points:t,most:n}){let o=t.map((d,g)=>`x${g+1}`);t.forEach((d,g)=>["x","y"].forEach((f,v)=>e.slider(`${f}_${g}`,`${o[g]}, ${f}`,{min:-n,max:n,step:.05,value:d[v]})));let r=1.2*n,s=y("polygon",{fill:"var(--raised)",stroke:"var(--rule)","stroke-width":r/150}),a=(d,g)=>t.map(()=>y("circle",{r:d*r,...g})),i=a(.05,{fill:"var(--accent)",style:"cursor: grab; touch-action: none"}),l=a(.035,{fill:"none",stroke:"var(--hue)","stroke-width":String(r/60)}),m=t.map((d,g)=>y("text",{"font-size":.1*r,fill:"var(--ink)"},o[g])),p=y("path",{d:`M${-r} 0H${r}M0 ${-r}V${r}`,stroke:"var(--rule)","stroke-width":r/200}),h=y("svg",{viewBox:`${-r} ${-r} ${2*r} ${2*r}`,style:"width: min(100%, 360px); display: block",role:"img","aria-label":"Orange: the points x. Blue circles: the outputs y, inside the triangle of the points."},p,s,...l,...i,...m);i.forEach((d,g)=>{d.addEventListener("pointerdown",f=>d.setPointerCapture(f.pointerId)),d.addEventListener("pointermove",f=>{if(!d.hasPointerCapture(f.pointerId))return;let v=h.getBoundingClientRect(),$=b=>(2*b-1)*r;Ve(e,`x_${g}`,$((f.clientX-v.left)/v.width)),Ve(e,`y_${g}`,-$((f.clientY-v.top)/v.height))})});let u=c("div");M(e.picture,c("div",{style:"display: flex; flex-wrap: wrap; gap: 8px 24px; align-items: center"},h,u)),e.run(()=>{let d=t.map((b,x)=>[e.number(`x_${x}`),e.number(`y_${x}`)]),[g,f,v]=[je(d),Re(d),Re(A(d,2))],$=(b,[x,w])=>N(b,{cx:x,cy:-w});d.forEach((b,x)=>{$(i[x],b),$(l[x],f[x]),N(m[x],{x:b[0]+.07*r,y:-b[1]-.05*r})}),N(s,{points:d.map(([b,x])=>`${b},${-x}`).join(" ")}),M(u,L("Weights: row n says what yₙ takes from each point",g,o.map(b=>b.replace("x","y")),o)),f.forEach(([b,x],w)=>{e.show(`out_x_${w}`,`y${w+1}, x`,b),e.show(`out_y_${w}`,`y${w+1}, y`,x)}),e.show("sum","Largest sum of a row of weights",Math.max(...g.map(b=>b.reduce((x,w)=>x+w)))),e.show("nonlinear","Largest element of f(2X) - 2 f(X); 0 if linear",Math.max(...v.flat().map((b,x)=>Math.abs(b-2*f.flat()[x]))))})}function Ve(e,t,n){let o=e.picture.parentElement.querySelector(`[name="${t}"]`);o.value=String(n),o.dispatchEvent(new Event("input"))}var[ee,te,j]=[640,180,50];function Wt(e,t){let n=0;for(let o=0;o<e;o+=2)n+=Math.cos(t/1e4**(o/e));return n}function We(e,{widths:t,d:n}){e.choice("d","d: dimensions",t.map(o=>[String(o),String(o)]),String(n)),e.slider("distance","Distance of two positions",{min:0,max:j,step:1,value:3}),e.run(()=>{let[o,r]=[e.number("d"),e.number("distance")],s=Array.from({length:j+1},(h,u)=>Wt(o,u)),a=s.findIndex((h,u)=>u>0&&h>s[u-1]),[i,l]=[h=>10+h*(ee-20)/j,h=>te-30-(te-50)*2*h/o],m=s.map((h,u)=>`${i(u).toFixed(1)},${l(h).toFixed(1)}`).join(" "),p=`Dot products for distances 0 to ${j}`;M(e.picture,y("svg",{viewBox:`0 0 ${ee} ${te}`,class:"products",role:"img","aria-label":p},y("line",{x1:0,x2:ee,y1:l(0),y2:l(0)}),y("polyline",{points:m}),y("circle",{cx:i(r),cy:l(s[r]),r:6}))),e.show("product","PE(p)·PE(p + distance)",s[r]),e.show("share","Relative to distance 0",s[r]/s[0]),e.show("rise","First distance with a larger product than the one before",a)})}function Ke(e,{matrices:t,parameters:n}){e.slider("rank","Rank r",{min:1,max:256,step:1,value:8}),e.choice("modules","Adapters",[["attention","of attention only"],["all","of attention and feed-forward"]],"attention"),e.run(()=>{let o=t[e.string("modules")],r=e.number("rank"),s=o.reduce((a,[i,l,m])=>a+r*(i+l)*m,0);k(e.picture,["trained","frozen"],[s/(s+n),n/(s+n)]),e.show("trained","Trained parameters",s,s.toLocaleString("en")),e.show("share","Of the model's parameters",s/n,`${(100*s/n).toFixed(2)} %`)})}var Kt={add:(e,t)=>e+t,exp:(e,t)=>Math.exp(t*e),power:(e,t,n)=>e**(t*n)};function Gt(e,t,n,o){let r=[t];for(let s=1;s<=o;s++)r.push(Kt[e](r[s-1],n,s));return r}function Ge(e,{start:t,c:n,steps:o}){let r=[["add","P(t) + c"],["exp","exp(c P(t))"],["power","P(t)^(c t)"]];e.choice("rule","P(t + 1)",r,"exp"),e.slider("c","c",{min:.01,max:1,step:.01,value:n}),e.slider("start","P(1)",{min:.5,max:3,step:.1,value:t}),e.run(()=>{let s=Gt(e.string("rule"),e.number("start"),e.number("c"),o),a=s.slice(1).map((m,p)=>Math.abs(m-s[p])),i=a.at(-1),l=a.filter(m=>m>1e-6&&m<1/0).length;M(e.picture,Qt(s)),e.show("last",`P(${o+1})`,s[o]),e.show("gap","Last two positions differ by",i,Number.isNaN(i)?"both infinite":void 0),e.show("distinct",`Steps of more than 0.000001, of ${o}`,l)})}var re=600,D=160,ne=5;function Qt(e){let t=e.map((s,a)=>{let i=6+(re-12)*a/(e.length-1),l=D-6-(D-12)*Math.min(1,s/ne),m=s>ne?"var(--accent)":"var(--hue)";return y("circle",{cx:i,cy:l,r:3,style:`fill: ${m}`})}),n=`P(t) for t = 1 to ${e.length}, from 0 to ${ne}; larger values at the upper edge`,o={viewBox:`0 0 ${re} ${D}`,width:"100%"},r=y("path",{d:`M0 ${D-6}H${re}`,style:"stroke: var(--rule)"});return y("svg",{...o,role:"img","aria-label":n},r,...t)}var Qe=([e,t],n)=>[e*Math.cos(n)-t*Math.sin(n),t*Math.cos(n)+e*Math.sin(n)];function Ue(e,{query:t,key:n}){e.slider("m","Position m of the query",{min:0,max:30,step:1,value:5}),e.slider("n","Position n of the key",{min:0,max:30,step:1,value:3}),e.slider("shift","Shift of both",{min:0,max:1e3,step:1,value:0}),e.run(()=>{let[o,r,s]=[e.number("m"),e.number("n"),e.number("shift")],a=Qe(t,o+s),i=Qe(n,r+s);M(e.picture,Ut(a,i)),e.show("product","q · k",a[0]*i[0]+a[1]*i[1]),e.show("distance","Distance m − n",o-r),e.show("q_0","q, first element",a[0]),e.show("k_0","k, first element",i[0])})}function Ut(e,t){let n=([s,a],i,l)=>y("g",{style:`stroke: var(${l}); fill: var(${l})`},y("path",{d:`M0 0L${80*s} ${-80*a}`,"stroke-width":3}),y("circle",{cx:80*s,cy:-80*a,r:5}),y("text",{x:92*s-4,y:-92*a+4,"font-size":14,"stroke-width":0},i)),o={viewBox:"-130 -115 260 230",width:"100%",style:"max-height: 260px"},r=y("circle",{r:80,style:"fill: none; stroke: var(--rule)"});return y("svg",{...o,role:"img","aria-label":"The turned query q and key k as arrows"},r,n(e,"q","--accent"),n(t,"k","--hue"))}function Xe(e,{tokens:t,scores:n}){let o=t.map((r,s)=>[String(s),`${s+1}: ${r}`]);e.choice("query","Query i",o,"0"),e.choice("by","Softmax over",[["row","all keys of one query"],["column","all queries of one key"]],"row"),e.slider("factor","All scores times",{min:0,max:8,step:.1,value:1}),e.run(()=>{let r=e.number("query"),s=n.map(l=>l.map(m=>m*e.number("factor"))),a=t.map((l,m)=>P(s.map(p=>p[m]))),i=e.string("by")==="row"?P(s[r]):a.map(l=>l[r]);k(e.picture,t.map((l,m)=>`α${r+1},${m+1} ${l}`),i),t.forEach((l,m)=>e.show(`score_${m}`,`e${r+1},${m+1} ${l}`,s[r][m])),i.forEach((l,m)=>e.show(`weight_${m}`,`α${r+1},${m+1}`,l)),e.show("sum","Sum of the weights",i.reduce((l,m)=>l+m,0))})}function Xt(e,t){return t==null?!1:!((e==="temperature"||e==="repetition_penalty")&&t===1)}function Ye(e,t,n,o=[]){let r=Float64Array.from(e);for(let b of o)r[b]=-1/0;let s=1/0,a=b=>{Math.abs(b)<s&&(s=Math.abs(b))},i=[{name:"model",probabilities:O(r)}],l=b=>Xt(b,n[b])?n[b]:null,m=l("no_repeat_ngram");if(m!==null){for(let b of Jt(t,m))r[b]=-1/0;i.push({name:"no_repeat_ngram",probabilities:O(r)})}let p=l("repetition_penalty");if(p!==null){for(let b of new Set(t))r[b]*=p;i.push({name:"repetition_penalty",probabilities:O(r)})}let h=l("temperature");if(h===0){let b=oe(r);a(r[b[0]]-r[b[1]]);let x=new Float64Array(r.length);x[b[0]]=1;let w=["temperature","top_k","top_p","min_p","typical_p"].filter(F=>l(F)!==null);return{stages:[...i,...w.map(F=>({name:F,probabilities:x}))],margin:s}}h!==null&&(r=r.map(b=>b/h),i.push({name:"temperature",probabilities:O(r)}));let u=O(r),d=(b,x)=>{u=Ze(u.map((w,F)=>x(F)?w:0)),i.push({name:b,probabilities:u})},g=l("top_k");if(g!==null){let b=oe(r);g<b.length&&a(r[b[g-1]]-r[b[g]]);let x=new Set(b.slice(0,g));d("top_k",w=>x.has(w))}let f=l("top_p");if(f!==null){let b=Je(oe(u),u,f,a);d("top_p",x=>b.has(x))}let v=l("min_p");if(v!==null){let b=v*u.reduce((x,w)=>Math.max(x,w),0);u.forEach(x=>x>0&&a(x-b)),d("min_p",x=>u[x]>=b)}let $=l("typical_p");if($!==null){let b=u.reduce((_,q)=>_-(q>0?q*Math.log(q):0),0),x=u.map(_=>Math.abs(-Math.log(_)-b)),w=Array.from(x.keys()).sort((_,q)=>x[_]-x[q]||_-q);for(let _=1;_<w.length;_++)u[w[_]]>0&&a(x[w[_]]-x[w[_-1]]);let F=Je(w,u,$,a);d("typical_p",_=>F.has(_))}return{stages:i,margin:s}}function Jt(e,t){let n=e.slice(e.length-t+1),o=[];for(let r=0;r+t<=e.length;r++)n.slice(0,t-1).every((s,a)=>e[r+a]===s)&&o.push(e[r+t-1]);return o}function Je(e,t,n,o){if(n>=1)return new Set(e);let r=new Set,s=0;for(let a of e){if(o(s-n),s>=n)break;r.add(a),s+=t[a]}return r}function oe(e){return Array.from(e.keys()).sort((t,n)=>e[t]===e[n]?t-n:e[n]>e[t]?1:-1)}function O(e){let t=e.reduce((n,o)=>Math.max(n,o),-1/0);return Ze(e.map(n=>Math.exp(n-t)))}function Ze(e){let t=e.reduce((n,o)=>n+o,0);return e.map(n=>n/t)}function et(e,{labels:t,logprobs:n}){e.slider("temperature","Temperature T",{min:0,max:10,step:.05,value:1}),e.slider("top_k","Top-k: keep the k likeliest",{min:1,max:t.length,step:1,value:t.length}),e.slider("top_p","Top-p: keep the likeliest until their sum is p",{min:.05,max:1,step:.05,value:1}),e.run(()=>{let o=Object.fromEntries(["temperature","top_k","top_p"].map(s=>[s,e.number(s)])),r=[...Ye(n,[],o).stages.at(-1).probabilities];k(e.picture,t,r),r.forEach((s,a)=>e.show(`p_${a}`,t[a],s)),e.show("kept","Tokens that can be drawn",r.filter(s=>s>0).length),e.show("entropy","Entropy in bits",H(r))})}function tt(e,{labels:t,scores:n,d_k:o}){t.forEach((r,s)=>{let a=Math.max(2*Math.abs(n[s]),10);e.slider(`score_${s}`,`Score of ${r}`,{min:-a,max:a,step:1,value:n[s]})}),e.slider("d_k","d_k: scores are divided by √d_k",{min:1,max:256,step:1,value:o}),e.run(()=>{let r=1/Math.sqrt(e.number("d_k")),s=P(t.map((a,i)=>e.number(`score_${i}`)*r));k(e.picture,t,s),s.forEach((a,i)=>e.show(`weight_${i}`,`Weight of ${t[i]}`,a)),e.show("entropy","Entropy in bits (0: hard choice)",H(s))})}function Yt(e,t,n){return t.map((o,r)=>-Math.log(P(e[o])[n[r]]))}function Zt(e,t,n,o){let r=e.map(s=>[...s]);return t.forEach((s,a)=>P(e[s]).forEach((i,l)=>r[s][l]-=o*(i-+(l===n[a])))),r}function rt(e,{words:t,inputs:n,labels:o,logits:r}){e.slider("rate","Learning rate",{min:0,max:20,step:.25,value:1}),e.run(()=>{let s=Zt(r,n,o,e.number("rate")),[a,i]=[r,s].map(u=>Yt(u,n,o)),l=n.map((u,d)=>`${t[u]} → ${t[o[d]]}`);k(e.picture,l,i.map(u=>Math.exp(-u)));let m=u=>u.reduce((d,g)=>d+g,0);e.show("before","Loss before the step",m(a)),e.show("after","Loss after the step",m(i));let[p,h]=[n[0],o[0]];e.show("weight",`Weight of ${l[0]}, before: ${r[p][h].toFixed(3)}`,s[p][h])})}function nt(e,{inputs:t,outputs:n,rows:o,bars:r}){for(let{name:s,label:a,options:i}of t)e.choice(s,a,i,i[0][0]);e.run(()=>{let s=o[t.map(({name:a})=>e.string(a)).join(",")];r&&k(e.picture,n.map(({label:a})=>a),s),n.forEach(({name:a,label:i},l)=>e.show(a,i,s[l]))})}var er=e=>e.map((t,n)=>e.map((o,r)=>(n===r?t:0)-t*o));function ot(e,{scores:t}){e.slider("exponent","d_k = 2 to the power of",{min:0,max:12,step:1,value:6}),e.choice("scaled","Scores are",[["no","q·k"],["yes","q·k / √d_k"]],"no"),e.run(()=>{let n=2**e.number("exponent"),o=e.string("scaled")==="yes"?1:Math.sqrt(n),r=P(t.map(s=>s*o));k(e.picture,t.map((s,a)=>`key ${a+1}`),r),e.show("d_k","d_k",n),e.show("largest","Largest weight",Math.max(...r)),e.show("gradient","Gradient of the softmax (Frobenius norm)",R(er(r)))})}function tr(e,t,n){return Array.from({length:t},(o,r)=>{let s=e/n**((r-r%2)/t);return r%2?Math.cos(s):Math.sin(s)})}var rr=(e,t)=>e.reduce((n,o,r)=>n+o*t[r],0);function st(e,{positions:t,width:n,base:o}){let r=Array.from({length:t},(i,l)=>tr(l,n,o)),s=c("canvas",{class:"waves",width:n,height:t,role:"img"});s.setAttribute("aria-label",`Positions 0 to ${t-1} as rows, ${n} dimensions as columns`);let a=c("div");M(e.picture,s,c("p",{class:"small"},"Dot product with all positions:"),a),e.slider("position","Position (row)",{min:0,max:t-1,step:1,value:20}),e.slider("other","Other position",{min:0,max:t-1,step:1,value:21}),e.slider("dimension","Dimension (column)",{min:0,max:n-1,step:1,value:0}),e.run(()=>{let[i,l,m]=[e.number("position"),e.number("other"),e.number("dimension")];nr(s,r,i,m);let p=r.map(b=>rr(r[i],b)),[h,u]=[Math.min(...p),Math.max(...p)],d=p.map((b,x)=>`${x},${20*(u-b)/(u-h)}`),g=y("line",{x1:l,x2:l,y1:0,y2:20,style:"stroke: var(--accent)"}),f=y("polyline",{points:d.join(" "),style:"stroke: var(--hue)"}),v=`Dot product of position ${i} with each position, from ${h.toFixed(1)} to ${u.toFixed(1)}`,$=`-1 -1 ${t+1} 22`;M(a,y("svg",{viewBox:$,role:"img","aria-label":v,class:"curve",preserveAspectRatio:"none"},g,f)),e.show("value",`Position ${i}, dimension ${m}`,r[i][m]),e.show("wavelength","Its wavelength in tokens",2*Math.PI*o**((m-m%2)/n)),e.show("dot",`Dot product of ${i} and ${l}`,p[l])})}function nr(e,t,n,o){let r=e.getContext("2d"),s=r.createImageData(e.width,e.height);t.flat().forEach((a,i)=>{s.data.set(a>0?[33,113,181]:[190,70,200],4*i),s.data[4*i+3]=Math.round(255*Math.abs(a))}),r.putImageData(s,0,0),r.fillStyle="rgba(230, 100, 20, 0.6)",r.fillRect(0,n,e.width,1),r.fillRect(o,0,1,e.height)}function at(e,t,n){let o=Math.floor(n/2);return Array.from({length:2*o+1},(s,a)=>t-o+a).filter(s=>s!==t&&s>=0&&s<e)}function it(e,{words:t,window:n}){e.slider("window","M adjacent words",{min:3,max:11,step:2,value:n}),e.slider("center","Place of the middle word",{min:0,max:t.length-1,step:1,value:3}),e.run(()=>{let[o,r]=[e.number("window"),e.number("center")],s=at(t.length,r,o),a=(m,p)=>p===r?c("strong",{},m):s.includes(p)?c("mark",{},m):c("span",{},m),i=s.map(m=>t[m]).join(", ");M(e.picture,c("p",{style:"display: flex; flex-wrap: wrap; gap: 6px"},...t.map(a)),c("p",{class:"small"},`CBOW: mean of (${i}) → ${t[r]}`),c("p",{class:"small"},`Skip-gram: ${t[r]} → each of (${i})`));let l=t.reduce((m,p,h)=>m+at(t.length,h,o).length,0);e.show("context","Context words of the middle word",s.length),e.show("pairs","Pairs of a word and a neighbor in the sentence",l)})}var lt={"five-scores":we,"length-penalty":Me,"pixel-orders":He,"position-products":We,algorithm:le,areas:ce,beam:me,block:de,combine:he,cost:ge,eigenvalue:fe,features:xe,generate:ye,history:ve,lookup:ke,mask:$e,mel:Pe,merges:Ce,ngram:Ee,one_hot:Te,order:Be,orders:ze,permute:Ie,points:De,positions:Ae,rank:Ke,recursion:Ge,rotary:Ue,row:Xe,sampling:et,series:pe,softmax:tt,step:rt,switches:nt,variance:ot,waves:st,window:it};function S(e){return e.split(/(`[^`]+`|\*[^*\s][^*]*\*)/).map(t=>t.length>2&&t.startsWith("`")?c("code",{},t.slice(1,-1)):t.length>2&&t.startsWith("*")?c("em",{},t.slice(1,-1)):t)}function ct(e){switch(e.kind){case"text":return c("p",{},...S(e.text));case"formula":return c("div",{class:"formula"},c("div",{class:"math"},e.formula),c("p",{},...S(e.text)));case"table":return ar(e);case"command":return c("div",{class:"command"},c("pre",{tabindex:0,"aria-label":"Command and output"},c("b",{},`$ ${e.command}`),`
${e.output}`),e.stored&&c("p",{class:"small"},`Stored output: ${e.stored}`));case"control":return or(e);case"look":return sr(e);case"quiz":return se(e,void 0,()=>{})}}function se(e,t,n){let o=c("p",{class:"consequence",role:"status"}),r=e.options.map((i,l)=>c("button",{type:"button","aria-pressed":"false",onclick:()=>s(l)},...S(i.text))),s=i=>{a(i),n(i)},a=i=>{let l=e.options[i];r.forEach((m,p)=>m.setAttribute("aria-pressed",String(i===p))),o.replaceChildren(c("strong",{},l.is_right?"Right. ":"Not quite. "),...S(l.consequence)),o.dataset.right=String(l.is_right)};return t!==void 0&&e.options[t]&&a(t),c("div",{class:"quiz",role:"group","aria-label":e.question},c("p",{class:"question"},...S(e.question)),c("div",{class:"options"},...r),o)}function or(e){let t=lt[e.control];if(!t)return c("p",{class:"error",role:"alert"},`This page has no control "${e.control}".`);let n=new V,o=c("div");return t(n,e.params),n.mount(o),c("section",{class:"control-block","data-control":e.control,"aria-label":e.title},c("h3",{},e.title),o)}function sr(e){let t=`look/${e.name}.html${e.view&&`#${e.view}`}`;return c("figure",{},c("iframe",{src:t,title:e.title,loading:"lazy",style:`height: ${e.height}px`}),c("figcaption",{class:"small"},e.title," ",c("a",{href:t},"Open alone")))}function ar(e){let t=e.rows.flat().filter(r=>typeof r=="number"),n=Math.max(...t.map(Math.abs),1e-9),o=r=>{if(typeof r=="string")return c("td",{},...S(r));let s=e.shaded?Math.round(60*Math.abs(r)/n):0,a=s?`background: color-mix(in srgb, var(--hue) ${s}%, var(--page))`:void 0,i=Number.isInteger(r)?r.toLocaleString("en"):r.toFixed(e.digits);return c("td",{class:"number",style:a},i)};return c("div",{class:"table",tabindex:0,role:"group","aria-label":e.title},c("table",{},c("caption",{},...S(e.title)),c("thead",{},c("tr",{},...e.columns.map(r=>c("th",{scope:"col"},...S(r))))),c("tbody",{},...e.rows.map(r=>c("tr",{},...r.map(o))))))}var mt="regard-lectures";function ir(){try{return JSON.parse(localStorage.getItem(mt)??"{}")}catch{return{}}}var ae=ir(),W=e=>ae[e];function pt(e,t){ae[e]=t;try{localStorage.setItem(mt,JSON.stringify(ae))}catch{}}var ut=`:root {
  color-scheme: light dark;
  --page: #ffffff;
  --raised: #f4f5f7;
  --ink: #1b1e26;
  --muted: #5d6370;
  --rule: #d5d9e0;
  --accent: #b8420b;
  --hue: #2171b5;
  --minus: #8e2a9b;
  --good: #1a7037;
  --bad: #b42318;
  --font: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14161b;
    --raised: #1f232b;
    --ink: #eceef2;
    --muted: #a3a9b6;
    --rule: #3a404b;
    --accent: #ff9457;
    --hue: #62aae2;
    --minus: #e38cf0;
    --good: #63cf83;
    --bad: #ff9086;
  }
}
* {
  box-sizing: border-box;
}
html {
  scroll-padding-top: 64px;
}
.present {
  zoom: 1.6;
}
body {
  margin: 0;
  background: var(--page);
  color: var(--ink);
  font: 16px/1.6 var(--font);
}
a {
  color: var(--hue);
}
header {
  position: sticky;
  top: 0;
  z-index: 1;
  display: flex;
  flex-wrap: wrap;
  justify-content: space-between;
  gap: 4px 16px;
  padding: 8px 16px;
  background: var(--page);
  border-bottom: 1px solid var(--rule);
}
header nav a {
  display: inline-block;
  min-width: 28px;
  padding: 2px 6px;
}
[aria-current="page"] {
  font-weight: 700;
  text-decoration: none;
  color: var(--ink);
}
main {
  max-width: 880px;
  margin: 0 auto;
  padding: 8px 16px 48px;
  overflow-wrap: anywhere;
}
h1 {
  line-height: 1.25;
}
h2 {
  margin-top: 48px;
  line-height: 1.3;
}
h3 {
  margin: 20px 0 4px;
  font-size: 16px;
}
.card h2 {
  margin: 24px 0 0;
}
.small {
  font-size: 14px;
  color: var(--muted);
}
.claim {
  padding-left: 14px;
  border-left: 4px solid var(--rule);
}
.terms {
  display: flex;
  flex-wrap: wrap;
  gap: 2px 14px;
}
.progress {
  display: flex;
  gap: 8px;
  align-items: center;
}
progress {
  accent-color: var(--hue);
}
.options {
  display: grid;
  gap: 6px;
}
button,
select,
input {
  font: inherit;
  color: inherit;
}
button {
  padding: 6px 12px;
  text-align: left;
  background: var(--raised);
  border: 1px solid var(--rule);
  border-radius: 6px;
  cursor: pointer;
}
button[aria-pressed="true"] {
  border-color: var(--accent);
  box-shadow: inset 0 0 0 1px var(--accent);
}
:focus-visible {
  outline: 2px solid var(--accent);
  outline-offset: 2px;
}
.consequence:empty {
  display: none;
}
.verdict {
  margin-top: 20px;
  padding: 10px 14px;
  background: var(--raised);
  border-radius: 6px;
}
.formula .math {
  font:
    18px/1.6 "STIX Two Math",
    "Cambria Math",
    "DejaVu Serif",
    serif;
  white-space: pre-wrap;
}
pre {
  padding: 10px 14px;
  overflow: auto;
  max-height: 420px;
  font-size: 13px;
  line-height: 1.45;
  background: var(--raised);
  border-radius: 6px;
}
pre b {
  display: inline-block;
  max-width: 100%;
  white-space: pre-wrap;
  overflow-wrap: anywhere;
}
.table {
  overflow: auto;
  overflow-wrap: normal;
  margin: 12px 0;
}
table {
  overflow-wrap: normal;
  border-collapse: collapse;
  font-size: 14px;
}
caption {
  text-align: left;
  color: var(--muted);
}
th,
td {
  padding: 3px 10px 3px 0;
  text-align: left;
  border-bottom: 1px solid var(--rule);
}
.table th {
  overflow-wrap: normal;
}
.number {
  white-space: nowrap;
  padding-left: 6px;
  white-space: nowrap;
  text-align: right;
  font-variant-numeric: tabular-nums;
}
.control-block {
  margin: 16px 0;
  padding: 4px 16px 12px;
  border: 1px solid var(--rule);
  border-radius: 8px;
}
.inputs {
  display: grid;
  grid-template-columns: minmax(0, 1fr);
  gap: 6px;
  margin: 12px 0;
}
.inputs label {
  display: grid;
  grid-template-columns: minmax(110px, 260px) minmax(80px, 1fr) 64px;
  gap: 10px;
  align-items: center;
  font-size: 14px;
}
.buttons {
  display: flex;
  flex-wrap: wrap;
  gap: 6px;
}
input[type="range"] {
  accent-color: var(--accent);
  width: 100%;
}
input[type="text"],
select {
  padding: 4px 8px;
  background: var(--page);
  border: 1px solid var(--rule);
  border-radius: 6px;
}
.outputs {
  display: flex;
  flex-wrap: wrap;
  gap: 4px 24px;
  margin: 0;
  font-size: 14px;
}
.outputs dt {
  color: var(--muted);
}
.outputs dd {
  margin: 0;
  font-weight: 600;
  font-variant-numeric: tabular-nums;
}
[data-output$="_light"] {
  color: var(--bad);
}
[data-output$="_light"][data-value="1"] {
  color: var(--good);
}
.bars {
  display: grid;
  gap: 4px;
  margin-top: 8px;
}
.bar-row {
  display: grid;
  grid-template-columns: minmax(70px, 150px) 1fr 80px;
  gap: 10px;
  align-items: center;
  font-size: 14px;
}
.bar-track {
  height: 14px;
  background: var(--raised);
}
.bar {
  display: block;
  height: 100%;
  background: var(--hue);
}
.bar-value {
  text-align: right;
  white-space: nowrap;
  font-variant-numeric: tabular-nums;
}
.map {
  display: block;
  width: 100%;
  height: 180px;
  image-rendering: pixelated;
  border: 1px solid var(--rule);
}
figure {
  margin: 12px 0;
}
iframe {
  width: 100%;
  border: 1px solid var(--rule);
  border-radius: 8px;
  background: var(--page);
}
footer {
  margin-top: 48px;
}
@media (max-width: 520px) {
  .picture th,
  .picture td {
    padding: 2px 4px 2px 0;
    font-size: 12px;
  }
  .inputs label {
    grid-template-columns: minmax(0, 1fr) 56px;
  }
  .inputs label span {
    grid-column: 1 / -1;
  }
}
.cells td,
.cells th {
  min-width: 40px;
  padding: 2px;
  font-size: 12px;
  text-align: center;
  white-space: nowrap;
  font-variant-numeric: tabular-nums;
}
.cells tbody td {
  cursor: pointer;
}
.cells .chosen {
  outline: 2px solid var(--accent);
  outline-offset: -2px;
}
.areas {
  display: block;
  width: min(100%, 320px);
}
.chart {
  display: block;
  width: min(100%, 560px);
}
.chart text {
  fill: var(--ink);
  font-size: 3px;
  text-anchor: middle;
}
.curve,
.waves {
  display: block;
  width: 100%;
  background: var(--page);
  height: 140px;
}
.waves {
  height: 240px;
  image-rendering: pixelated;
}
.point {
  fill: var(--ink);
  font-size: 3px;
  text-anchor: middle;
}
.tree {
  font: 13px var(--font);
}
.tree text {
  fill: var(--ink);
  text-anchor: middle;
}
.tree path,
.tree rect {
  fill: none;
  stroke: var(--hue);
}
.tree .dropped {
  stroke: var(--rule);
  stroke-dasharray: 4 3;
}
.tree .finished {
  stroke: var(--ink);
}
.tree .best {
  stroke: var(--accent);
  stroke-width: 2.5;
}
polyline,
line {
  fill: none;
  stroke-width: 2px;
  vector-effect: non-scaling-stroke;
}
@media (max-width: 520px) {
  .cells td,
  .cells th {
    min-width: 24px;
    padding: 2px 1px;
    font-size: 10px;
  }
}
.products {
  width: 100%;
}
.products polyline,
.products line {
  fill: none;
  stroke: var(--hue);
  stroke-width: 2;
}
.products line {
  stroke: var(--rule);
}
.products circle {
  fill: var(--accent);
}
`;var I=JSON.parse(document.getElementById("document").textContent);document.head.append(c("style",{},ut));document.getElementById("app").append(I.lecture?pr(I.lecture):mr());addEventListener("keydown",e=>{let t=e.target;e.ctrlKey||e.metaKey||e.altKey||t.matches("input, select, textarea")||e.key.toLowerCase()==="p"&&cr(()=>document.documentElement.classList.toggle("present"))});function cr(e){let n=[...document.querySelectorAll("section[id]")].filter(o=>o.getBoundingClientRect().top<innerHeight/2).at(-1);e(),n&&scrollY>0&&n.scrollIntoView()}function mr(){return c("main",{},c("h1",{},"Five lectures on Transformers"),c("p",{},"Predict, see, change, judge: each station is one claim of a lecture, with numbers that Regard computed."),...I.lectures.map(e=>c("section",{class:"card"},c("h2",{},c("a",{href:`lecture-${e.number}.html`},`${e.number}. ${e.title}`)),c("p",{},...S(e.introduction)),dt(e))),ht())}function pr(e){let t=c("div",{class:"small",role:"status"}),n=c("p",{class:"terms small"}),o=()=>{t.replaceChildren(dt(e)),n.replaceChildren(...dr(e))};o();let r=I.lectures.map(({number:a,title:i})=>c("a",{href:`lecture-${a}.html`,title:i,"aria-current":a===e.number?"page":null},String(a))),s=e.stations.map(({name:a,title:i})=>c("li",{},c("a",{href:`#${a}`},i)));return c("div",{},c("header",{},c("nav",{"aria-label":"Lectures"},c("a",{href:"index.html"},"All lectures"),...r),t),c("main",{},c("h1",{},`${e.number}. ${e.title}`),c("p",{},...S(e.introduction)),c("nav",{class:"contents","aria-label":"Stations"},c("ol",{},...s)),n,...e.stations.map((a,i)=>ur(a,i+1,o)),ht()))}function ur(e,t,n){let o=a=>{pt(e.name,a),n()},{judgment:r,text:s}=e.verdict;return c("section",{id:e.name,class:"station"},c("h2",{},`${t}. ${e.title}`),c("p",{class:"claim"},...S(e.claim)),c("h3",{},"Predict"),se(e.predict,W(e.name),o),c("h3",{},"See"),...e.blocks.map(ct),c("h3",{},"Change"),c("p",{},...S(e.change)),c("div",{class:"verdict"},c("strong",{},`${r[0].toUpperCase()}${r.slice(1)}: `),...S(s)))}function dt(e){let t=e.stations.filter(({name:o})=>W(o)!==void 0).length,n=`${t} of ${e.stations.length} predictions made`;return c("label",{class:"progress small"},n,c("progress",{max:e.stations.length||1,value:t,"aria-label":n}))}function dr(e){let t=e.stations.filter(({terms:r})=>r.length),n=[...new Set(t.flatMap(r=>r.terms))],o=r=>t.some(s=>s.terms.includes(r)&&W(s.name)!==void 0);return n.length?["Check list: ",...n.map(r=>c("span",{},o(r)?`☑ ${r}`:`☐ ${r}`))]:[]}function ht(){return c("footer",{class:"small"},`Made with Regard ${I.version}: `,c("code",{},"regard lectures"),". P: presentation mode.")}})();
